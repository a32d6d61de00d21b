#include "scheduler/bounds/lower_bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/bounds/closed.h"
#include "tests/support/brute_force.h"
#include "tests/support/cases.h"
#include "tests/support/phases.h"
#include "tests/support/problems.h"
#include "tests/support/random_problems.h"
#include "tests/support/tiny_problems.h"

namespace counterflow {
namespace {

using testing::BruteForce;
using testing::cases;
using testing::describe;
using testing::draw;
using testing::set_pair_cost;
using testing::TinyProblems;
using testing::uniform_problem;

void expect_bound_holds(const Problem& problem) {
  const Time bound = lower_bound(problem, BoundEffort::full);
  EXPECT_FALSE(BruteForce(problem).beats(bound)) << bound.count() << " " << describe(problem);
}

// ---- Against every order of tiny problems -------------------------------------------------------

TEST(LowerBound, HoldsForEveryOrderOfTinyProblems) {
  TinyProblems problems(1);
  int tight = 0;
  for (int round = 0; round < cases(300); ++round) {
    const Problem problem = problems.next({});
    expect_bound_holds(problem);
    const Time bound = lower_bound(problem, BoundEffort::full);
    tight += BruteForce(problem).beats(bound + Time{1}) ? 1 : 0;
  }
  // Not by being useless.
  EXPECT_GT(tight, cases(200));
}

TEST(LowerBound, HoldsWithinMemoryLimits) {
  TinyProblems problems(8);
  int tight = 0;
  int possible = 0;
  for (int round = 0; round < cases(600); ++round) {
    const Problem problem =
        problems.next({.frozen = round % 4 == 0, .skip_links = round % 3 == 0, .memory = true});
    expect_bound_holds(problem);
    if (!BruteForce(problem).beats(Time{1000})) continue;
    ++possible;
    const Time bound = lower_bound(problem, BoundEffort::full);
    tight += BruteForce(problem).beats(bound + Time{1}) ? 1 : 0;
  }
  EXPECT_GT(possible, cases(300));
  EXPECT_GT(tight * 10, possible * 8);
}

TEST(LowerBound, HoldsWithinMemoryLimitsWithFactorsAndPairs) {
  TinyProblems problems(9);
  for (int round = 0; round < cases(300); ++round) {
    expect_bound_holds(
        problems.next({.pairs = round % 2 == 0, .factors = round % 3 != 0, .memory = true}));
  }
}

TEST(LowerBound, HoldsForPhases) {
  TinyProblems problems(12);
  std::mt19937_64 random(12);
  int tight = 0;
  for (int round = 0; round < cases(400); ++round) {
    Problem problem = problems.next({.pairs = round % 4 == 0,
                                     .factors = round % 3 == 0,
                                     .frozen = round % 5 == 0,
                                     .skip_links = round % 7 == 0,
                                     .memory = round % 2 == 0});
    testing::draw_phases(problem, random);
    expect_bound_holds(problem);
    const Time bound = lower_bound(problem, BoundEffort::full);
    tight += BruteForce(problem).beats(bound + Time{1}) ? 1 : 0;
  }
  EXPECT_GT(tight, cases(200));
}

// More memory allows every order that less did.
TEST(LowerBound, IsMonotoneInTheLimit) {
  TinyProblems problems(10);
  for (int round = 0; round < cases(300); ++round) {
    Problem problem = problems.next({.memory = true});
    if (!BruteForce(problem).beats(Time{1000})) continue;
    const Time less = lower_bound(problem);
    for (Bytes& limit : problem.limits.bytes) ++limit.value;
    for (std::int64_t& limit : problem.limits.activations) ++limit;
    EXPECT_LE(lower_bound(problem), less) << describe(problem);
  }
}

TEST(LowerBound, HoldsWithFrozenStagesAndSkipLinks) {
  TinyProblems problems(2);
  for (int round = 0; round < cases(300); ++round) {
    expect_bound_holds(problems.next({.frozen = true, .skip_links = true}));
  }
}

TEST(LowerBound, HoldsWithPairsHoweverTheyAreFused) {
  TinyProblems problems(3);
  for (int round = 0; round < cases(300); ++round) {
    expect_bound_holds(problems.next({.pairs = true, .frozen = round % 3 == 0}));
  }
}

TEST(LowerBound, HoldsWithFactors) {
  TinyProblems problems(4);
  for (int round = 0; round < cases(300); ++round)
    expect_bound_holds(problems.next({.factors = true}));
}

TEST(LowerBound, HoldsWithFactorsAndPairs) {
  TinyProblems problems(5);
  for (int round = 0; round < cases(300); ++round) {
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

TEST(ClosedBound, IsTheClosedFormForEqualStages) {
  std::mt19937_64 random(6);
  for (int round = 0; round < cases(400); ++round) {
    const StageCost cost{Time(draw(random, 0, 20)), Time(draw(random, 0, 20)),
                         Time(draw(random, 0, 20))};
    const Chain chain{std::vector<StageCost>(static_cast<std::size_t>(draw(random, 1, 8)), cost),
                      static_cast<int>(draw(random, 1, 20)), Time(draw(random, 0, 5))};
    EXPECT_EQ(closed_bound(chain.problem(SplitBackward::split)), chain.closed_form(false));
    EXPECT_EQ(closed_bound(chain.problem(SplitBackward::automatic)), chain.closed_form(false));
    EXPECT_EQ(closed_bound(chain.problem(SplitBackward::full)), chain.closed_form(true));
  }
}

// With uneven W the last W may be that of a later stage, which the closed form leaves out.
TEST(ClosedBound, IsAtLeastTheClosedFormForUnevenStages) {
  std::mt19937_64 random(7);
  for (int round = 0; round < cases(400); ++round) {
    Chain chain{{}, static_cast<int>(draw(random, 1, 20)), Time(draw(random, 0, 5))};
    const bool even_weights = round % 2 == 0;
    for (auto p = draw(random, 1, 8); p > 0; --p) {
      chain.stages.push_back({Time(draw(random, 0, 20)), Time(draw(random, 0, 20)),
                              even_weights ? Time{7} : Time(draw(random, 0, 20))});
    }
    EXPECT_EQ(closed_bound(chain.problem(SplitBackward::full)), chain.closed_form(true));
    const Time split = closed_bound(chain.problem(SplitBackward::split));
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
  Problem problem = uniform_problem(PlacementKind::loop, 1, 1, 4, Time{3}, Time{2}, Time{1});
  set_pair_cost(problem, Time{4});
  // Four pairs at most save 2 each; one order has three.
  EXPECT_EQ(lower_bound(problem), Time{16});
  EXPECT_TRUE(BruteForce(problem).beats(Time{19}));
  EXPECT_FALSE(BruteForce(problem).beats(Time{18}));
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
