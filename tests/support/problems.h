#pragma once

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/problem/problem.h"
#include "schedules/registry.h"

// Problems built in code, and counts along an order, for tests.
namespace counterflow::testing {

// Test costs are given in units of one millisecond, so that fractions of a unit stay exact.
inline constexpr std::int64_t kUnit = 1'000'000;

[[nodiscard]] inline Time units(double value) {
  return Time{
      static_cast<std::int64_t>(value * static_cast<double>(kUnit) + (value < 0 ? -.5 : .5))};
}

// A chain of equal stages; F, I and W are those of one stage.
[[nodiscard]] inline Problem uniform_problem(PlacementKind kind, int p, int v, int m, Time forward,
                                             Time input, Time weight, Time latency = Time{0}) {
  Problem problem;
  problem.placement = Placement(kind, p, v);
  const auto stages = static_cast<std::size_t>(problem.placement.stages());
  problem.graph = StageGraph::chain(problem.placement.stages());
  problem.microbatches = m;
  problem.costs = Costs(std::vector<StageCost>(stages, {forward, input, weight}));
  problem.memory.assign(stages, StageMemory{Bytes{1}, Bytes{1}});
  problem.frozen.assign(stages, 0);
  problem.links = Links(latency);
  problem.message.assign(stages, Bytes{0});
  return problem;
}

// The same for a family, on its own placement; costs are those of a rank's share of the model, so
// that families with different numbers of stages compare.
struct RankCosts {
  double forward = 1;
  double input = 1;
  double weight = 1;
  double latency = 0;
};
[[nodiscard]] inline Problem family_problem(const Family& family, int p, int v, int m,
                                            const RankCosts& costs = {}) {
  return uniform_problem(family.placement, p, v, m, units(costs.forward / v),
                         units(costs.input / v), units(costs.weight / v), units(costs.latency));
}

inline void set_pair_cost(Problem& problem, Time cost) {
  PairCosts pairs;
  pairs.set_default(cost);
  problem.costs = Costs(problem.costs.stages(), problem.costs.factors(), pairs);
}

// A family with its own number of chunks, at the first number of microbatches it takes from 2p+1
// on, which divides evenly by nothing much; none if it takes none up to 4p+1.
[[nodiscard]] inline std::optional<Problem> ragged_problem(const Family& family, int ranks) {
  for (int m = 2 * ranks + 1; m < 4 * ranks + 2; ++m) {
    const Shape shape{.ranks = ranks, .microbatches = m, .chunks = family.default_chunks};
    if (refusal(family, shape)) continue;
    Problem problem = family_problem(family, ranks, family.default_chunks, m);
    problem.forward_only = family.forward_only;
    return problem;
  }
  return std::nullopt;
}

// The most stage-microbatches each rank holds at once, from the begin of F to the end of B or W,
// counted along its order: nothing on a rank overlaps but a fused pair, which holds both.
[[nodiscard]] inline std::vector<int> peak_activations(const Schedule& schedule) {
  std::vector<int> peaks;
  for (const auto& order : schedule.ranks) {
    int held = 0;
    int peak = 0;
    for (const Slot& slot : order) {
      const auto each = [&](auto count) {
        count(slot.first);
        if (slot.is_pair()) count(slot.second);
      };
      each([&](const Op& op) { held += op.kind == OpKind::forward ? 1 : 0; });
      peak = std::max(peak, held);
      each([&](const Op& op) {
        const bool ends = op.kind == OpKind::backward || op.kind == OpKind::backward_weight;
        held -= ends ? 1 : 0;
      });
    }
    peaks.push_back(peak);
  }
  return peaks;
}
[[nodiscard]] inline int peak_of_all(const Schedule& schedule) {
  const std::vector<int> peaks = peak_activations(schedule);
  return *std::max_element(peaks.begin(), peaks.end());
}

// The name of a parametrised test: what a test name may not hold becomes an underscore.
[[nodiscard]] inline std::string test_name(std::string text) {
  for (char& c : text) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return text;
}

// For messages.
[[nodiscard]] inline std::string describe(const Family& family, const Shape& shape) {
  return std::string(family.name) + " p=" + std::to_string(shape.ranks) +
         " m=" + std::to_string(shape.microbatches) + " v=" + std::to_string(shape.chunks) +
         " g=" + std::to_string(shape.group_size);
}

// The compute time of a rank.
[[nodiscard]] inline Time busy(const Problem& problem, const Schedule& schedule, Rank rank) {
  Time sum{0};
  for (const Slot& slot : schedule.ranks[static_cast<std::size_t>(rank)]) {
    sum += problem.duration(slot);
  }
  return sum;
}

}  // namespace counterflow::testing
