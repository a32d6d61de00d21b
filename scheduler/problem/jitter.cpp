#include "scheduler/problem/jitter.h"

#include <algorithm>
#include <cmath>

namespace counterflow {

bool varies(const Jitter& jitter) {
  const auto own = [](const auto& each) { return each.spread && each.spread->sigma > 0; };
  return jitter.compute.sigma > 0 || jitter.transfer.sigma > 0 ||
         jitter.stragglers.probability > 0 || std::ranges::any_of(jitter.ranks, own) ||
         std::ranges::any_of(jitter.links, own) ||
         std::ranges::any_of(jitter.kinds, [](const auto& kind) { return kind.second.sigma > 0; });
}

double largest_factor(const Spread& spread) {
  // 53 bits give no normal deviate beyond 8.3 and no exponential one beyond 37.5.
  constexpr double kMostNormal = 8.3;
  constexpr double kMostExponential = 37.5;
  switch (spread.distribution) {
    case Distribution::normal:
      return 1 + spread.sigma * kMostNormal;
    case Distribution::lognormal:
      return std::exp(std::sqrt(std::log1p(spread.sigma * spread.sigma)) * kMostNormal);
    case Distribution::uniform:
      return 1 + spread.sigma * std::sqrt(3.0);
    case Distribution::exponential:
      return 1 + spread.sigma * kMostExponential;
  }
  return 1;
}

double largest_factor(const Jitter& jitter) {
  double spread = std::max(largest_factor(jitter.compute), largest_factor(jitter.transfer));
  double slow = 1;
  for (const auto& [kind, own] : jitter.kinds) spread = std::max(spread, largest_factor(own));
  const auto count = [&](double factor, const std::optional<Spread>& own) {
    slow = std::max(slow, factor);
    if (own) spread = std::max(spread, largest_factor(*own));
  };
  for (const Jitter::OfRank& rank : jitter.ranks) count(rank.slow, rank.spread);
  for (const Jitter::OfLink& link : jitter.links) count(link.slow, link.spread);
  return spread * slow * std::max(1.0, jitter.stragglers.slow);
}

}  // namespace counterflow
