#include "simulator/collectives.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "simulator/max_min.h"

namespace counterflow::sim {
namespace {

std::span<const Collective> body_of(const Program& program, const CollectiveGroup::Member& member) {
  const RankProgram& rank = program.ranks[member.rank];
  return entries(rank.collectives, rank.instructions[member.instruction].body);
}

// Everyone comes once, for the same.
bool is_possible(const Program& program, const CollectiveGroup& group) {
  if (group.members.size() != group.communicator.size()) return false;
  return std::ranges::all_of(group.members, [&](const CollectiveGroup::Member& member) {
    return std::ranges::find(group.communicator, static_cast<Rank>(member.rank)) !=
               group.communicator.end() &&
           same_work(body_of(program, member), group.body);
  });
}

}  // namespace

bool same_work(std::span<const Collective> a, std::span<const Collective> b) {
  return std::ranges::equal(a, b, [](const Collective& x, const Collective& y) {
    return x.kind == y.kind && x.size == y.size;
  });
}

std::vector<CollectiveGroup> collective_groups(const Program& program) {
  std::vector<std::vector<CollectiveGroup>> by_communicator(program.communicators.size());
  for (std::uint32_t rank = 0; rank < program.ranks.size(); ++rank) {
    std::vector<std::size_t> count(program.communicators.size());
    const auto& instructions = program.ranks[rank].instructions;
    for (std::uint32_t i = 0; i < instructions.size(); ++i) {
      if (instructions[i].kind != InstructionKind::collective) continue;
      const CommunicatorId id = instructions[i].communicator;
      std::vector<CollectiveGroup>& groups = by_communicator.at(id);
      const std::size_t k = count[id]++;
      if (k == groups.size()) groups.push_back({program.communicators[id].members, {}, {}});
      groups[k].members.push_back({rank, i});
    }
  }
  std::vector<CollectiveGroup> all;
  for (std::vector<CollectiveGroup>& groups : by_communicator) {
    for (CollectiveGroup& group : groups) {
      group.body = body_of(program, group.members.front());
      group.possible = is_possible(program, group);
      all.push_back(std::move(group));
    }
  }
  return all;
}

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
