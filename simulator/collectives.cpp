#include "simulator/collectives.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "simulator/max_min.h"

namespace counterflow::sim {

double CollectiveCosts::slowest(const std::vector<Rank>& members, std::size_t k) const {
  // A link of its own for each pair.
  constexpr Bytes kMany{1'000'000'000'000};
  if (links_.topology() == nullptr) {
    return static_cast<double>(links_.occupancy(kMany).count()) / static_cast<double>(kMany.value);
  }
  std::vector<double> capacities;
  for (const SharedLink& link : links_.topology()->links()) capacities.push_back(link.bandwidth);
  std::vector<std::vector<std::uint32_t>> flows;
  for (std::size_t i = 0; i < members.size(); ++i) {
    flows.push_back(links_.topology()->route(members[i], members[(i + k) % members.size()]));
  }
  const double rate = std::ranges::min(max_min_rates(capacities, flows));
  return rate == MaxMinSolver::kUnlimited ? 0 : 1e9 / rate;
}

CollectiveCosts::Hop CollectiveCosts::shift(const std::vector<Rank>& members, std::size_t k) const {
  Hop worst;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const Time latency = links_.latency(members[i], members[(i + k) % members.size()]);
    worst.latency = std::max(worst.latency, static_cast<double>(latency.count()));
  }
  worst.ns_per_byte = slowest(members, k);
  return worst;
}

Time CollectiveCosts::duration(const std::vector<Rank>& members,
                               std::span<const Collective> body) const {
  const std::size_t n = members.size();
  if (n < 2) return Time{0};
  const auto count = static_cast<double>(n);
  const Hop ring = shift(members, 1);
  double sum = 0;
  for (const Collective& collective : body) {
    const auto size = static_cast<double>(collective.size.value);
    const double step = ring.latency + size / count * ring.ns_per_byte;
    switch (collective.kind) {
      case CollectiveKind::all_reduce:
        sum += 2 * (count - 1) * step;
        break;
      case CollectiveKind::reduce_scatter:
      case CollectiveKind::all_gather:
        sum += (count - 1) * step;
        break;
      case CollectiveKind::broadcast:
        sum += (count - 1) * ring.latency + size * ring.ns_per_byte;
        break;
      case CollectiveKind::barrier:
        sum += static_cast<double>(std::bit_width(n - 1)) * ring.latency;
        break;
      case CollectiveKind::all_to_all:
        for (std::size_t k = 1; k < n; ++k) {
          const Hop hop = shift(members, k);
          sum += hop.latency + size / count * hop.ns_per_byte;
        }
        break;
    }
  }
  constexpr double kLongest = 0x1p62;
  return Time{std::llround(std::min(sum, kLongest))};
}

}  // namespace counterflow::sim
