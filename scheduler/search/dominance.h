#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace counterflow {

// States of a search that lead nowhere: what is done (the key), and when (the times). A state with
// the same key whose times are all as late or later leads nowhere either.
class Dominance {
 public:
  using Key = std::vector<std::int32_t>;
  using Times = std::vector<std::int64_t>;

  [[nodiscard]] bool covers(const Key& key, const Times& times) const;
  void add(const Key& key, Times times);
  void clear() { states_.clear(); }

 private:
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };
  std::unordered_map<Key, std::vector<Times>, Hash> states_;
};

}  // namespace counterflow
