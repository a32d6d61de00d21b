#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "executor/backend.h"
#include "executor/processes/agreement.h"
#include "executor/progress.h"

// Values as bytes, for frames and pipes between processes of one program.
namespace counterflow::exec {

class ByteWriter {
 public:
  template <typename T>
  ByteWriter& put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    const auto* bytes = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), bytes, bytes + sizeof value);
    return *this;
  }
  template <typename T>
  ByteWriter& put_list(std::span<const T> list) {
    put(list.size());
    const auto bytes = std::as_bytes(list);
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  [[nodiscard]] std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

// Reads what ByteWriter wrote; past the end everything is zero and good() is false.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  template <typename T>
  T get() {
    T value{};
    if (take(sizeof value)) std::memcpy(&value, bytes_.data() + at_ - sizeof value, sizeof value);
    return value;
  }
  template <typename T>
  std::vector<T> get_list() {
    const auto size = get<std::size_t>();
    if (size > (bytes_.size() - at_) / sizeof(T)) {
      good_ = false;
      return {};
    }
    std::vector<T> list(size);
    if (size > 0) std::memcpy(list.data(), bytes_.data() + at_, size * sizeof(T));
    at_ += size * sizeof(T);
    return list;
  }
  [[nodiscard]] bool good() const { return good_; }

 private:
  bool take(std::size_t size) {
    good_ = good_ && size <= bytes_.size() - at_;
    if (good_) at_ += size;
    return good_;
  }
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
  bool good_ = true;
};

// How far a rank says it is in a step.
struct PeerProgress {
  struct Lacking {
    std::uint32_t instruction = 0;
    Lack lack{};
  };
  std::vector<std::uint8_t> states{};  // [instruction] 0: not begun, 1: begun, 2: ended
  std::vector<Lacking> lacks{};        // of collectives under way
};

[[nodiscard]] std::vector<std::byte> to_bytes(const Intent& intent);
[[nodiscard]] Intent intent_from_bytes(std::span<const std::byte> bytes);
[[nodiscard]] std::vector<std::byte> to_bytes(const PeerProgress& progress);
[[nodiscard]] PeerProgress progress_from_bytes(std::span<const std::byte> bytes);
[[nodiscard]] std::vector<std::byte> to_bytes(const RunResult& result);
[[nodiscard]] RunResult result_from_bytes(std::span<const std::byte> bytes);
[[nodiscard]] std::vector<std::byte> to_bytes(const Failure& failure);
[[nodiscard]] Failure failure_from_bytes(std::span<const std::byte> bytes);
// Of one rank, all steps.
[[nodiscard]] std::vector<std::byte> to_bytes(const std::vector<RankTimeline>& steps);
[[nodiscard]] std::vector<RankTimeline> timelines_from_bytes(std::span<const std::byte> bytes);

}  // namespace counterflow::exec
