#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

namespace counterflow::exec {

// Values as a Python pickle, protocol 2: what PyTorch's tools load. Write one value; containers are
// opened, filled and closed; a dict takes its keys and values in turn.
class PickleWriter {
 public:
  PickleWriter();
  PickleWriter& null();
  PickleWriter& boolean(bool value);
  PickleWriter& integer(std::int64_t value);
  // UTF-8. The second time a text is written it is named by its number.
  PickleWriter& text(std::string_view value);

  PickleWriter& open_dict();
  PickleWriter& close_dict();
  PickleWriter& open_list();
  PickleWriter& close_list();
  PickleWriter& open_tuple();
  PickleWriter& close_tuple();

  // A member of a dict.
  PickleWriter& member(std::string_view key, std::int64_t value) {
    return text(key).integer(value);
  }
  PickleWriter& member(std::string_view key, std::string_view value) {
    return text(key).text(value);
  }

  // The end: nothing may be written after it.
  [[nodiscard]] std::string finish();

 private:
  void little_endian(std::uint64_t value, int bytes);

  std::string out_;
  std::unordered_map<std::string, std::uint32_t> texts_;  // the number of each
};

}  // namespace counterflow::exec
