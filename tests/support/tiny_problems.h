#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/problem/problem.h"
#include "tests/support/random_problems.h"

// Random problems small enough to try every order.
namespace counterflow::testing {

inline std::string describe(const Problem& problem) {
  std::string text = "p=" + std::to_string(problem.ranks()) +
                     " m=" + std::to_string(problem.microbatches) + " placement " +
                     std::string(name(problem.placement.kind())) + " split " +
                     std::to_string(static_cast<int>(problem.split_backward)) +
                     (problem.forward_only ? " forward-only" : "");
  for (Stage s = 0; s < problem.stages(); ++s) {
    const auto& cost = problem.costs.stages()[static_cast<std::size_t>(s)];
    text += "\n  stage " + std::to_string(s) + " rank " +
            std::to_string(problem.placement.rank_of(s)) + ": F " +
            std::to_string(cost.forward.count()) + " I " +
            std::to_string(cost.backward_input.count()) + " W " +
            std::to_string(cost.backward_weight.count()) +
            (problem.frozen[static_cast<std::size_t>(s)] != 0 ? " frozen" : "") + " pairs";
    for (Stage t = 0; t < problem.stages(); ++t) {
      text += " " + std::to_string(problem.costs.pairs().find(s, t).count());
    }
  }
  text += "\n  limits";
  for (const Bytes limit : problem.limits.bytes) text += " " + std::to_string(limit.value) + "B";
  for (const Bytes fixed : problem.limits.static_memory) text += " -" + std::to_string(fixed.value);
  for (const auto limit : problem.limits.activations) text += " " + std::to_string(limit);
  text += " activations";
  for (const StageMemory& memory : problem.memory) {
    text += " " + std::to_string(memory.activation.value) + "/" +
            std::to_string(memory.kept_for_weight.value);
  }
  text += "\n  factors";
  for (const double factor : problem.costs.factors().forward) text += " " + std::to_string(factor);
  return text;
}

// What a random tiny problem may have beyond uneven costs and latency.
struct Features {
  bool pairs = false;
  bool factors = false;
  bool frozen = false;
  bool skip_links = false;
  bool memory = false;
};

class TinyProblems {
 public:
  explicit TinyProblems(std::uint64_t seed) : random_(seed) {}

  Problem next(const Features& features) {
    Problem problem;
    problem.placement = placement();
    const int stages = problem.placement.stages();
    // Few enough ops to try every order.
    const int most = features.pairs ? 4 : 6;
    problem.microbatches = static_cast<int>(draw(random_, 1, std::max(1, most / stages)));
    problem.graph = features.skip_links && stages == 3 ? StageGraph(3, {{0, 1}, {0, 2}, {1, 2}})
                                                       : StageGraph::chain(stages);
    problem.split_backward = static_cast<SplitBackward>(draw(random_, 0, 2));
    problem.forward_only = draw(random_, 0, 9) == 0;
    const auto count = static_cast<std::size_t>(stages);
    problem.frozen.assign(count, 0);
    if (features.frozen) {
      for (auto& frozen : problem.frozen) frozen = draw(random_, 0, 2) == 0 ? 1 : 0;
    }
    problem.memory.resize(count);
    if (features.memory) limit_memory(problem);
    problem.message.resize(count);
    problem.costs = Costs(stage_costs(count), factors(problem.microbatches, features.factors),
                          pairs(stages, features.pairs));
    problem.links = links(problem.ranks());
    return problem;
  }

 private:
  Placement placement() {
    switch (draw(random_, 0, 6)) {
      case 0:
        return {PlacementKind::loop, 1, 1};
      case 1:
        return {PlacementKind::loop, 2, 2};
      case 2:
        return {PlacementKind::v, 2, 2};
      case 3:
        return {PlacementKind::bidirectional, 2, 1};
      case 4:
        return {2, {0, 1, 0}};
      case 5:
        return {PlacementKind::loop, 3, 1};
      default:
        return {PlacementKind::loop, 2, 1};
    }
  }
  // Limits from too little for anything to all that could be held.
  void limit_memory(Problem& problem) {
    for (StageMemory& memory : problem.memory) {
      const std::int64_t activation = draw(random_, 0, 4);
      memory = {Bytes{activation}, Bytes{draw(random_, 0, activation)}};
    }
    const auto which = draw(random_, 0, 2);
    for (int rank = 0; rank < problem.ranks(); ++rank) {
      if (which != 0) problem.limits.bytes.push_back(Bytes{draw(random_, 3, 10)});
      if (which == 1) problem.limits.static_memory.push_back(Bytes{draw(random_, 0, 1)});
      if (which != 1) problem.limits.activations.push_back(draw(random_, 1, 4));
    }
  }
  std::vector<StageCost> stage_costs(std::size_t count) {
    std::vector<StageCost> costs;
    for (std::size_t i = 0; i < count; ++i) {
      costs.push_back(
          {Time(draw(random_, 0, 9)), Time(draw(random_, 0, 9)), Time(draw(random_, 0, 9))});
    }
    return costs;
  }
  MicrobatchFactors factors(int microbatches, bool some) {
    MicrobatchFactors result;
    if (!some) return result;
    for (auto* kind : {&result.forward, &result.backward_input, &result.backward_weight}) {
      for (int mb = 0; mb < microbatches; ++mb) {
        kind->push_back(static_cast<double>(draw(random_, 1, 8)) / 4);
      }
    }
    return result;
  }
  PairCosts pairs(int stages, bool some) {
    PairCosts result;
    if (!some) return result;
    if (draw(random_, 0, 1) == 0) result.set_default(Time(draw(random_, 0, 25)));
    for (auto count = draw(random_, 0, 3); count > 0; --count) {
      result.set(static_cast<Stage>(draw(random_, 0, stages - 1)),
                 static_cast<Stage>(draw(random_, 0, stages - 1)), Time(draw(random_, 0, 25)));
    }
    return result;
  }
  Links links(int ranks) {
    if (draw(random_, 0, 1) == 0) return Links(Time(draw(random_, 0, 4)));
    std::vector<Time> table;
    for (int from = 0; from < ranks; ++from) {
      for (int to = 0; to < ranks; ++to) table.emplace_back(from == to ? 0 : draw(random_, 0, 6));
    }
    return {ranks, std::move(table), 0};
  }

  std::mt19937_64 random_;
};

}  // namespace counterflow::testing
