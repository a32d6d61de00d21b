#pragma once

#include <cmath>
#include <numbers>

namespace counterflow::reference {

// Gaussian error linear unit, x Φ(x), and its derivative. Hendrycks, Gimpel, arXiv 1606.08415.
template <typename T>
[[nodiscard]] T gelu(T x) {
  return x * (1 + std::erf(x / std::numbers::sqrt2_v<T>)) / 2;
}

template <typename T>
[[nodiscard]] T gelu_derivative(T x) {
  const T cumulative = (1 + std::erf(x / std::numbers::sqrt2_v<T>)) / 2;
  const T density = std::exp(-x * x / 2) * std::numbers::inv_sqrtpi_v<T> / std::numbers::sqrt2_v<T>;
  return cumulative + x * density;
}

}  // namespace counterflow::reference
