#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "scheduler/problem/problem.h"
#include "schedules/registry.h"

namespace counterflow::testing {

// A whole number in [low, high]. Not a std:: distribution: those differ between libraries.
inline std::int64_t draw(std::mt19937_64& random, std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1));
}

// A random problem some family takes: uneven stages, latencies (uniform or by link), bandwidth,
// factors, frozen stages, pair costs, each in some of the problems.
class RandomProblems {
 public:
  explicit RandomProblems(std::uint64_t seed) : random_(seed) {}

  struct Sample {
    const Family* family = nullptr;
    Problem problem;
  };

  Sample next() {
    for (;;) {
      const auto all = families();
      const Family& family = all[static_cast<std::size_t>(draw(random_, 0, std::ssize(all) - 1))];
      const Shape shape{.ranks = static_cast<int>(draw(random_, 1, 6)),
                        .microbatches = static_cast<int>(draw(random_, 1, 14)),
                        .chunks = family.takes_chunks ? static_cast<int>(draw(random_, 1, 4))
                                                      : family.default_chunks};
      if (!refusal(family, shape)) return {&family, problem_for(family, shape)};
    }
  }

 private:
  bool sometimes() { return draw(random_, 0, 3) == 0; }

  Problem problem_for(const Family& family, const Shape& shape) {
    Problem problem;
    problem.placement = Placement(family.placement, shape.ranks, shape.chunks);
    problem.microbatches = shape.microbatches;
    problem.forward_only = family.forward_only;
    const int stages = problem.placement.stages();
    const auto count = static_cast<std::size_t>(stages);
    problem.graph = graph(stages);
    problem.frozen.assign(count, 0);
    if (sometimes()) {
      for (auto& frozen : problem.frozen) frozen = sometimes() ? 1 : 0;
    }
    problem.costs = Costs(stage_costs(count), factors(shape.microbatches), pairs(stages));
    for (std::size_t stage = 0; stage < count; ++stage) {
      const std::int64_t activation = draw(random_, 0, 50);
      problem.memory.push_back({Bytes{activation}, Bytes{draw(random_, 0, activation)}});
      problem.message.push_back(Bytes{draw(random_, 0, 40)});
    }
    problem.links = links(shape.ranks);
    return problem;
  }

  StageGraph graph(int stages) {
    if (stages < 3 || !sometimes()) return StageGraph::chain(stages);
    std::vector<StageGraph::Edge> edges;
    for (Stage to = 1; to < stages; ++to) {
      for (Stage from = 0; from < to; ++from) {
        if (from + 1 == to || draw(random_, 0, 4) == 0) edges.emplace_back(from, to);
      }
    }
    return {stages, std::move(edges)};
  }

  std::vector<StageCost> stage_costs(std::size_t count) {
    std::vector<StageCost> costs;
    const bool zeros = sometimes();
    const std::int64_t low = zeros ? 0 : 1;
    for (std::size_t stage = 0; stage < count; ++stage) {
      costs.push_back({Time(draw(random_, low, 20)), Time(draw(random_, low, 20)),
                       Time(draw(random_, low, 20))});
    }
    return costs;
  }

  MicrobatchFactors factors(int microbatches) {
    if (!sometimes()) return {};
    std::vector<double> some;
    for (int i = 0; i < microbatches; ++i) {
      some.push_back(static_cast<double>(draw(random_, 1, 8)) / 4);
    }
    return {some, some, some, std::vector<double>(some.size(), 1.0)};
  }

  PairCosts pairs(int stages) {
    PairCosts result;
    if (!sometimes()) return result;
    if (sometimes()) result.set_default(Time(draw(random_, 5, 30)));
    for (int i = 0; i < stages; ++i) {
      result.set(static_cast<Stage>(draw(random_, 0, stages - 1)),
                 static_cast<Stage>(draw(random_, 0, stages - 1)), Time(draw(random_, 5, 30)));
    }
    return result;
  }

  Links links(int ranks) {
    // Bytes a second, so that a byte takes a few nanoseconds.
    const double bandwidth = sometimes() ? 1e9 / static_cast<double>(draw(random_, 1, 3)) : 0;
    if (!sometimes()) return Links(Time(draw(random_, 0, 5)), bandwidth);
    std::vector<Time> table;
    for (int from = 0; from < ranks; ++from) {
      for (int to = 0; to < ranks; ++to) table.emplace_back(from == to ? 0 : draw(random_, 0, 9));
    }
    return {ranks, std::move(table), bandwidth};
  }

  std::mt19937_64 random_;
};

}  // namespace counterflow::testing
