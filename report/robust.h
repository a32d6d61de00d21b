#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

// Statistics that a few outliers do not move. Of nothing they are 0.
namespace counterflow {

[[nodiscard]] inline double median_of_sorted(std::span<const double> sorted) {
  const std::size_t n = sorted.size();
  if (n == 0) return 0;
  return (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
}

// O(n).
[[nodiscard]] inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

// The standard deviation of normal values, from the median absolute deviation. O(n).
[[nodiscard]] inline double spread(std::vector<double> values) {
  constexpr double kNormal = 1.4826;
  const double middle = median(values);
  for (double& value : values) value = std::abs(value - middle);
  return kNormal * median(std::move(values));
}

}  // namespace counterflow
