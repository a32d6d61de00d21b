#include "report/drift.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "report/robust.h"

namespace counterflow {
namespace {

// A series in two halves; of an odd number the middle one belongs to neither.
struct Halves {
  std::vector<double> first;
  std::vector<double> last;
};

Halves halves_of(const std::vector<double>& series) {
  const auto half = std::ssize(series) / 2;
  return {{series.begin(), series.begin() + half}, {series.end() - half, series.end()}};
}

// How far the halves lie apart by the ranks of their values, in standard deviations of what chance
// does (Mann and Whitney, normal approximation). Whatever the noise is like, if steps are
// independent. O(n^2), of a few hundred.
double rank_sum_score(const Halves& halves) {
  const auto n = static_cast<double>(halves.first.size());
  double above = 0;
  for (const double a : halves.first) {
    for (const double b : halves.last) above += b > a ? 1 : (b == a ? 0.5 : 0);
  }
  return (above - n * n / 2) / std::sqrt(n * n * (2 * n + 1) / 12);
}

Time nanoseconds(double value) {
  return Time{static_cast<std::int64_t>(std::llround(value))};
}

}  // namespace

std::optional<Drift> drift_of(const std::vector<double>& makespans,
                              const std::vector<KindSeries>& kinds) {
  constexpr std::size_t kLeastSteps = 10;  // fewer cannot be that unlikely
  constexpr double kLeastChange = 0.03;
  constexpr double kScore = 2.576;  // one in a hundred, both ways
  if (makespans.size() < kLeastSteps || std::ranges::min(makespans) <= 0) return std::nullopt;
  const Halves halves = halves_of(makespans);
  const double first = median(halves.first);
  const double last = median(halves.last);
  Drift drift{.first = nanoseconds(first), .last = nanoseconds(last), .change = last / first - 1};
  const double score = rank_sum_score(halves);
  drift.is_sure = std::abs(drift.change) >= kLeastChange && std::abs(score) >= kScore &&
                  (score > 0) == (drift.change > 0);
  double most = std::abs(last - first) / 4;
  for (const KindSeries& each : kinds) {
    const Halves own = halves_of(each.times);
    const double change = median(own.last) - median(own.first);
    const double towards = last < first ? -change : change;
    if (towards <= most) continue;
    most = towards;
    drift.kind = each.kind;
    drift.of_kind = nanoseconds(change);
  }
  return drift;
}

}  // namespace counterflow
