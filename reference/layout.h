#pragma once

#include <cstddef>
#include <span>

namespace counterflow::reference {

// A named piece of a flat buffer.
struct Piece {
  std::size_t first = 0;
  std::size_t count = 0;

  template <typename T>
  [[nodiscard]] std::span<T> of(std::span<T> whole) const {
    return whole.subspan(first, count);
  }
};

// Hands out pieces one behind the other.
class Layout {
 public:
  [[nodiscard]] Piece take(std::size_t count) {
    const Piece piece{size_, count};
    size_ += count;
    return piece;
  }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  std::size_t size_ = 0;
};

}  // namespace counterflow::reference
