#pragma once

#include <cstddef>
#include <span>

namespace counterflow::reference {

// A linear layer y = x Wᵀ + b on `rows` rows, everything row-major, W of [out][in] and b behind it
// in `parameters`. Each sum runs in ascending order, one multiplication and one addition a term, so
// the bits do not depend on who calls.
template <typename T>
struct Linear {
  std::size_t in = 0;
  std::size_t out = 0;

  [[nodiscard]] std::size_t parameters() const { return out * in + out; }

  void forward(std::span<const T> parameters, std::span<const T> x, std::span<T> y) const;
  // dx = dy W.
  void input_gradient(std::span<const T> parameters, std::span<const T> dy, std::span<T> dx) const;
  // Adds dyᵀ x and the column sums of dy to `gradients`.
  void weight_gradient(std::span<const T> x, std::span<const T> dy, std::span<T> gradients) const;
};

extern template struct Linear<float>;
extern template struct Linear<double>;

}  // namespace counterflow::reference
