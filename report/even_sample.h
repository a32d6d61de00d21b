#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace counterflow {

// Of a sequence of any length at most `most` elements, evenly spread: all at first, then every
// second, every fourth. O(1) an element.
template <typename T>
class EvenSample {
 public:
  explicit EvenSample(std::size_t most) : most_(most) {}

  void add(T value) {
    const std::size_t index = seen_++;
    if (index % stride_ != 0) return;
    if (values_.size() == most_) {
      std::size_t kept = 0;
      for (std::size_t i = 0; i < most_; i += 2, ++kept) {
        if (i > 0) values_[kept] = std::move(values_[i]);
      }
      values_.resize(kept);
      stride_ *= 2;
      if (index % stride_ != 0) return;
    }
    values_.push_back(std::move(value));
  }

  [[nodiscard]] const std::vector<T>& values() const { return values_; }
  [[nodiscard]] std::vector<T>& values() { return values_; }
  // The place in the sequence of values()[i].
  [[nodiscard]] std::size_t index(std::size_t i) const { return i * stride_; }

 private:
  std::size_t most_;
  std::size_t stride_ = 1;
  std::size_t seen_ = 0;
  std::vector<T> values_;
};

}  // namespace counterflow
