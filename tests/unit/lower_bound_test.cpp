#include "scheduler/bounds/lower_bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/brute_force.h"
#include "tests/support/problems.h"
#include "tests/support/random_problems.h"

namespace counterflow {
namespace {

using testing::BruteForce;
using testing::draw;
using testing::set_pair_cost;
using testing::uniform_problem;

std::string describe(const Problem& problem) {
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
  text += "\n  factors";
  for (const double factor : problem.costs.factors().forward) text += " " + std::to_string(factor);
  return text;
}

void expect_bound_holds(const Problem& problem) {
  const Time bound = lower_bound(problem);
  EXPECT_FALSE(BruteForce(problem).beats(bound)) << bound.count() << " " << describe(problem);
}

// ---- Against every order of tiny problems -------------------------------------------------------

// What a random tiny problem may have beyond uneven costs and latency.
struct Features {
  bool pairs = false;
  bool factors = false;
  bool frozen = false;
  bool skip_links = false;
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

TEST(LowerBound, HoldsForEveryOrderOfTinyProblems) {
  TinyProblems problems(1);
  int tight = 0;
  for (int round = 0; round < 300; ++round) {
    const Problem problem = problems.next({});
    expect_bound_holds(problem);
    tight += BruteForce(problem).beats(lower_bound(problem) + Time{1}) ? 1 : 0;
  }
  // Not by being useless.
  EXPECT_GT(tight, 100);
}

TEST(LowerBound, HoldsWithFrozenStagesAndSkipLinks) {
  TinyProblems problems(2);
  for (int round = 0; round < 300; ++round) {
    expect_bound_holds(problems.next({.frozen = true, .skip_links = true}));
  }
}

TEST(LowerBound, HoldsWithPairsHoweverTheyAreFused) {
  TinyProblems problems(3);
  for (int round = 0; round < 300; ++round) {
    expect_bound_holds(problems.next({.pairs = true, .frozen = round % 3 == 0}));
  }
}

TEST(LowerBound, HoldsWithFactors) {
  TinyProblems problems(4);
  for (int round = 0; round < 300; ++round) expect_bound_holds(problems.next({.factors = true}));
}

TEST(LowerBound, HoldsWithFactorsAndPairs) {
  TinyProblems problems(5);
  for (int round = 0; round < 300; ++round) {
    expect_bound_holds(problems.next({.pairs = true, .factors = true, .frozen = round % 3 == 0}));
  }
}

// Each part rounds up by half a nanosecond and each pair down by as much, so that pairs save even
// where they cost no less than their parts.
TEST(LowerBound, HoldsWhereFactorsRoundUpThePartsAndDownThePairs) {
  for (const int cost : {14, 15, 16}) {
    Problem problem = uniform_problem(PlacementKind::loop, 1, 1, 4, Time{5}, Time{5}, Time{5});
    PairCosts pairs;
    pairs.set_default(Time{cost});
    const std::vector<double> half(4, 0.5);
    problem.costs = Costs(problem.costs.stages(), {half, half, half, half}, pairs);
    // F 3, three pairs, B 6; without pairs 36.
    const Time fused = Time{9} + 3 * problem.costs.duration({OpKind::forward, 0, 0, 1},
                                                            {OpKind::backward, 0, 0, 0});
    EXPECT_LT(fused, Time{36});
    EXPECT_LE(lower_bound(problem), fused) << cost;
  }
}

// ---- Closed forms
// ---------------------------------------------------------------------------------

struct Chain {
  std::vector<StageCost> stages;
  int microbatches;
  Time hop;

  [[nodiscard]] Problem problem(SplitBackward split) const {
    const int p = static_cast<int>(stages.size());
    Problem result =
        uniform_problem(PlacementKind::loop, p, 1, microbatches, Time{0}, Time{0}, Time{0}, hop);
    result.costs = Costs(stages);
    result.split_backward = split;
    return result;
  }
  // The bounds published for one stage a rank, the largest over the stages.
  [[nodiscard]] Time closed_form(bool full) const {
    Time best{0};
    Time in{0};
    Time out{0};
    for (const StageCost& stage : stages) {
      const Time gradient = stage.backward_input + (full ? stage.backward_weight : Time{0});
      const Time all = stage.forward + stage.backward_input + stage.backward_weight;
      const Time last = full ? Time{0} : stages.front().backward_weight;
      best = std::max({best, in + microbatches * all,
                       in + microbatches * (stage.forward + gradient) + out + last});
      in += stage.forward + hop;
      out += gradient + hop;
    }
    return best;
  }
};

TEST(LowerBound, IsTheClosedFormForEqualStages) {
  std::mt19937_64 random(6);
  for (int round = 0; round < 400; ++round) {
    const StageCost cost{Time(draw(random, 0, 20)), Time(draw(random, 0, 20)),
                         Time(draw(random, 0, 20))};
    const Chain chain{std::vector<StageCost>(static_cast<std::size_t>(draw(random, 1, 8)), cost),
                      static_cast<int>(draw(random, 1, 20)), Time(draw(random, 0, 5))};
    EXPECT_EQ(lower_bound(chain.problem(SplitBackward::split)), chain.closed_form(false));
    EXPECT_EQ(lower_bound(chain.problem(SplitBackward::automatic)), chain.closed_form(false));
    EXPECT_EQ(lower_bound(chain.problem(SplitBackward::full)), chain.closed_form(true));
  }
}

// With uneven W the last W may be that of a later stage, which the closed form leaves out.
TEST(LowerBound, IsAtLeastTheClosedFormForUnevenStages) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 400; ++round) {
    Chain chain{{}, static_cast<int>(draw(random, 1, 20)), Time(draw(random, 0, 5))};
    const bool even_weights = round % 2 == 0;
    for (auto p = draw(random, 1, 8); p > 0; --p) {
      chain.stages.push_back({Time(draw(random, 0, 20)), Time(draw(random, 0, 20)),
                              even_weights ? Time{7} : Time(draw(random, 0, 20))});
    }
    EXPECT_EQ(lower_bound(chain.problem(SplitBackward::full)), chain.closed_form(true));
    const Time split = lower_bound(chain.problem(SplitBackward::split));
    if (even_weights) {
      EXPECT_EQ(split, chain.closed_form(false));
    } else {
      EXPECT_GE(split, chain.closed_form(false));
    }
  }
}

TEST(LowerBound, IsMetByZeroBubbleScheduleWithAsManyMicrobatchesAsRanks) {
  // (m+p-1)(F+I)+W.
  const Problem problem =
      uniform_problem(PlacementKind::loop, 4, 1, 4, Time{10}, Time{12}, Time{7});
  EXPECT_EQ(lower_bound(problem), Time{7 * 22 + 7});
}

TEST(LowerBound, OfOneRankIsItsWork) {
  EXPECT_EQ(lower_bound(uniform_problem(PlacementKind::loop, 1, 1, 5, Time{3}, Time{2}, Time{1})),
            Time{30});
}

TEST(LowerBound, OfOneRankWithPairsFusesAllItCan) {
  Problem problem = uniform_problem(PlacementKind::loop, 1, 1, 5, Time{3}, Time{2}, Time{1});
  set_pair_cost(problem, Time{4});
  // Five pairs at most save 2 each; one order has four.
  EXPECT_EQ(lower_bound(problem), Time{20});
  EXPECT_TRUE(BruteForce(problem).beats(Time{23}));
  EXPECT_FALSE(BruteForce(problem).beats(Time{22}));
}

TEST(LowerBound, OfForwardOnlyIsTheFillAndTheLoad) {
  Problem problem =
      uniform_problem(PlacementKind::loop, 3, 1, 4, Time{5}, Time{9}, Time{9}, Time{2});
  problem.forward_only = true;
  // Two hops of 5+2 in, then four forwards on the last rank.
  EXPECT_EQ(lower_bound(problem), Time{34});
}

}  // namespace
}  // namespace counterflow
