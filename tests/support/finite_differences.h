#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <vector>

namespace counterflow::testing {

// The largest difference between a gradient and central differences of `value` at `point`, relative
// to the larger of 1 and the entry. In double precision steps of 1e-5 leave errors around 1e-9.
[[nodiscard]] inline double worst_difference(const std::function<double()>& value,
                                             std::span<double> point,
                                             std::span<const double> gradient) {
  constexpr double kStep = 1e-5;
  double worst = 0;
  for (std::size_t i = 0; i < point.size(); ++i) {
    const double there = point[i];
    point[i] = there + kStep;
    const double above = value();
    point[i] = there - kStep;
    const double below = value();
    point[i] = there;
    const double slope = (above - below) / (2 * kStep);
    worst = std::max(worst, std::abs(slope - gradient[i]) / std::max(1.0, std::abs(slope)));
  }
  return worst;
}

}  // namespace counterflow::testing
