#include "scheduler/problem/compression.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "scheduler/problem/config.h"
#include "scheduler/problem/problem.h"

namespace counterflow {
namespace {

bool crosses_ranks(const Placement& placement, Stage from, Stage to) {
  for (int replica = 0; replica < placement.replicas(); ++replica) {
    if (placement.rank_of(from, replica) != placement.rank_of(to, replica)) return true;
  }
  return false;
}

struct PackedBytes {
  double forward = 0;
  double gradient = 0;
};

// [stage] in memory.
std::vector<PackedBytes> packed_bytes(const Problem& problem) {
  std::vector<PackedBytes> bytes(static_cast<std::size_t>(problem.stages()));
  for (Stage to = 0; to < problem.stages(); ++to) {
    for (const Stage from : problem.graph.predecessors(to)) {
      if (!crosses_ranks(problem.placement, from, to)) continue;
      const auto size = static_cast<double>(problem.message[static_cast<std::size_t>(from)].value);
      for (const Stage end : {from, to}) {
        PackedBytes& all = bytes[static_cast<std::size_t>(end)];
        if (is_packed(problem.wire_type(from, to))) all.forward += size;
        if (is_packed(problem.wire_type(to, from)) && problem.needs_backward_input(from)) {
          all.gradient += size;
        }
      }
    }
  }
  return bytes;
}

}  // namespace

std::vector<PackingCost> packing_costs(const Problem& problem) {
  std::vector<PackingCost> costs(static_cast<std::size_t>(problem.stages()));
  const double rate = problem.compression.rate;
  if (rate <= 0 || !problem.compression.any()) return costs;
  const auto time = [&](double bytes) {
    constexpr auto kLongest = static_cast<double>(kMaxTotal);
    return Time{std::llround(std::min(bytes / rate * 1e9, kLongest))};
  };
  const std::vector<PackedBytes> bytes = packed_bytes(problem);
  for (std::size_t s = 0; s < costs.size(); ++s) {
    costs[s] = {time(bytes[s].forward), time(bytes[s].gradient)};
  }
  return costs;
}

Problem with_packing_costs(Problem problem) {
  if (problem.compression.rate <= 0 || !problem.compression.any()) return problem;
  const std::vector<PackingCost> packing = packing_costs(problem);
  std::vector<StageCost> stages = problem.costs.stages();
  std::vector<Time> forward;
  std::vector<Time> gradient;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    stages[s].forward += packing[s].forward;
    stages[s].backward_input += packing[s].gradient;
    forward.push_back(packing[s].forward);
    gradient.push_back(packing[s].gradient);
  }
  PairCosts pairs = problem.costs.pairs();
  if (!pairs.empty()) pairs.add(std::move(forward), std::move(gradient));
  problem.costs = Costs(std::move(stages), problem.costs.factors(), std::move(pairs));
  return problem;
}

}  // namespace counterflow
