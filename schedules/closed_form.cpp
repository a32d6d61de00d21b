#include "schedules/closed_form.h"

#include <algorithm>

namespace counterflow {
namespace {

bool is_chain(const StageGraph& graph) {
  for (Stage s = 0; s < graph.stages(); ++s) {
    const auto before = graph.predecessors(s);
    if (s == 0 ? !before.empty() : before.size() != 1 || before.front() != s - 1) return false;
  }
  return true;
}

bool costs_are_equal(const Costs& costs) {
  const auto& stages = costs.stages();
  return costs.uniform() && std::all_of(stages.begin(), stages.end(), [&](const StageCost& cost) {
           return cost.forward == stages[0].forward &&
                  cost.backward_input == stages[0].backward_input &&
                  cost.backward_weight == stages[0].backward_weight;
         });
}

// The latency of every hop of the chain, if it is one and the same.
std::optional<Time> common_latency(const Problem& problem) {
  std::optional<Time> common;
  const Placement& placement = problem.placement;
  for (int replica = 0; replica < placement.replicas(); ++replica) {
    for (Stage s = 0; s + 1 < placement.stages(); ++s) {
      const Rank from = placement.rank_of(s, replica);
      const Rank to = placement.rank_of(s + 1, replica);
      if (from == to) continue;
      const Time there = problem.links.latency(from, to);
      if (there != problem.links.latency(to, from) || common.value_or(there) != there) {
        return std::nullopt;
      }
      common = there;
    }
  }
  return common.value_or(Time{0});
}

}  // namespace

std::optional<EqualStages> equal_stages(const Problem& problem) {
  const bool frozen = std::any_of(problem.frozen.begin(), problem.frozen.end(),
                                  [](std::uint8_t flag) { return flag != 0; });
  if (problem.forward_only || frozen || !problem.links.only_latency() || !is_chain(problem.graph) ||
      !costs_are_equal(problem.costs)) {
    return std::nullopt;
  }
  const std::optional<Time> latency = common_latency(problem);
  if (!latency) return std::nullopt;
  const StageCost& cost = problem.costs.stages().front();
  return EqualStages{.ranks = problem.ranks(),
                     .microbatches = problem.microbatches,
                     .chunks = problem.stages() / problem.ranks(),
                     .forward = cost.forward,
                     .input = cost.backward_input,
                     .weight = cost.backward_weight,
                     .latency = *latency};
}

std::optional<EqualStages> equal_stages_full_backward(const Problem& problem) {
  if (problem.split_backward == SplitBackward::split) return std::nullopt;
  return equal_stages(problem);
}

std::optional<Time> common_pair_cost(const Problem& problem, PairsOf pairs) {
  const StageCost& stage = problem.costs.stages().front();
  const Time sum = stage.forward + stage.backward_input + stage.backward_weight;
  if (problem.costs.pairs().empty()) return sum;
  std::optional<Time> common;
  for (Rank r = 0; r < problem.ranks(); ++r) {
    for (const Chunk& forward : problem.placement.chunks_of(r)) {
      for (const Chunk& backward : problem.placement.chunks_of(r)) {
        if (pairs == PairsOf::different_chunks && forward == backward) continue;
        const Time given = problem.costs.pairs().find(forward.stage, backward.stage);
        const Time cost = given < Time{0} ? sum : given;
        if (common.value_or(cost) != cost) return std::nullopt;
        common = cost;
      }
    }
  }
  return common.value_or(sum);
}

}  // namespace counterflow
