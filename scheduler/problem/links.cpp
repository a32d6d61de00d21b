#include "scheduler/problem/links.h"

#include <algorithm>
#include <cmath>

namespace counterflow {

Time Links::longest_latency() const {
  return table_.empty() ? latency_ : *std::max_element(table_.begin(), table_.end());
}

Time Links::occupancy(Bytes size) const {
  if (!has_bandwidth()) return Time{0};
  constexpr double kLongest = 0x1p62;
  const double nanoseconds = static_cast<double>(size.value) / bandwidth_ * 1e9;
  return Time{std::llround(std::min(nanoseconds, kLongest))};
}

}  // namespace counterflow
