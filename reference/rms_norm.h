#pragma once

#include <cmath>
#include <cstddef>
#include <span>

namespace counterflow::reference {

// Root mean square normalisation without weights: every row of `width` over the root of its mean
// square. Zhang, Sennrich, arXiv 1910.07467.
template <typename T>
[[nodiscard]] T rms_of(std::span<const T> row) {
  constexpr T kEpsilon = static_cast<T>(1e-6);
  T squares = 0;
  for (const T x : row) squares += x * x;
  return std::sqrt(squares / static_cast<T>(row.size()) + kEpsilon);
}

template <typename T>
void rms_norm(std::size_t width, std::span<const T> x, std::span<T> y) {
  for (std::size_t row = 0; row < x.size(); row += width) {
    const T rms = rms_of(x.subspan(row, width));
    for (std::size_t i = 0; i < width; ++i) y[row + i] = x[row + i] / rms;
  }
}

// Adds the gradient of x.
template <typename T>
void rms_norm_gradient(std::size_t width, std::span<const T> x, std::span<const T> dy,
                       std::span<T> dx) {
  for (std::size_t row = 0; row < x.size(); row += width) {
    const T rms = rms_of(x.subspan(row, width));
    T dot = 0;
    for (std::size_t i = 0; i < width; ++i) dot += dy[row + i] * x[row + i];
    const T along = dot / (static_cast<T>(width) * rms * rms);
    for (std::size_t i = 0; i < width; ++i) dx[row + i] += (dy[row + i] - x[row + i] * along) / rms;
  }
}

}  // namespace counterflow::reference
