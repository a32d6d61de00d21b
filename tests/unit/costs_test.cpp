#include "scheduler/problem/costs.h"

#include <gtest/gtest.h>

#include <vector>

#include "scheduler/problem/links.h"
#include "scheduler/problem/problem.h"

namespace counterflow {
namespace {

constexpr Op op(OpKind kind, int stage, int microbatch) {
  return {kind, 0, static_cast<std::uint16_t>(stage), microbatch};
}

const std::vector<StageCost> kTwoStages = {{Time{10}, Time{20}, Time{30}},
                                           {Time{11}, Time{21}, Time{31}}};

TEST(Costs, OfEachKind) {
  const Costs costs(kTwoStages);
  EXPECT_EQ(costs.duration(op(OpKind::forward, 1, 0)).count(), 11);
  EXPECT_EQ(costs.duration(op(OpKind::backward_input, 1, 0)).count(), 21);
  EXPECT_EQ(costs.duration(op(OpKind::backward_weight, 1, 0)).count(), 31);
  EXPECT_EQ(costs.duration(op(OpKind::backward, 1, 0)).count(), 52);
  EXPECT_EQ(costs.duration(op(OpKind::reduce_gradients, 1, 0)).count(), 0);
}

TEST(Costs, FactorsScaleEachKindAndRoundOnce) {
  const Costs costs(kTwoStages, {{1, 1.26}, {1, 0.5}, {1, 1.05}, {1, 1}});
  EXPECT_FALSE(costs.uniform());
  EXPECT_EQ(costs.duration(op(OpKind::forward, 0, 0)).count(), 10);
  EXPECT_EQ(costs.duration(op(OpKind::forward, 0, 1)).count(), 13);
  EXPECT_EQ(costs.duration(op(OpKind::backward_input, 1, 1)).count(), 11);
  EXPECT_EQ(costs.duration(op(OpKind::backward_weight, 1, 1)).count(), 33);
  // Splitting a backward does not change the total.
  EXPECT_EQ(costs.duration(op(OpKind::backward, 1, 1)).count(), 11 + 33);
}

TEST(Costs, PairTakesItsEntryThenTheDefaultThenTheSum) {
  PairCosts pairs;
  const Costs plain(kTwoStages, {}, pairs);
  EXPECT_TRUE(pairs.empty());
  const Op forward = op(OpKind::forward, 0, 0);
  const Op backward = op(OpKind::backward, 1, 0);
  EXPECT_EQ(plain.duration(forward, backward).count(), 62);
  pairs.set(0, 1, Time{40});
  EXPECT_EQ(Costs(kTwoStages, {}, pairs).duration(forward, backward).count(), 40);
  EXPECT_EQ(Costs(kTwoStages, {}, pairs).duration(op(OpKind::forward, 1, 0), backward).count(), 63);
  pairs.set_default(Time{50});
  EXPECT_EQ(Costs(kTwoStages, {}, pairs).duration(forward, backward).count(), 40);
  EXPECT_EQ(Costs(kTwoStages, {}, pairs).duration(op(OpKind::forward, 1, 0), backward).count(), 50);
  EXPECT_EQ(pairs.largest().count(), 50);
}

TEST(Costs, PairWithAnInputGradientAloneCostsTheSum) {
  PairCosts pairs;
  pairs.set_default(Time{1});
  const Costs costs(kTwoStages, {}, pairs);
  EXPECT_EQ(costs.duration(op(OpKind::forward, 0, 0), op(OpKind::backward_input, 1, 0)).count(),
            31);
}

TEST(Costs, PairWithAStageWithoutWeightGradientCostsNoMoreThanItsParts) {
  PairCosts pairs;
  pairs.set(0, 1, Time{25});
  pairs.set(1, 1, Time{100});
  const Costs costs({{Time{10}, Time{20}, Time{30}}, {Time{11}, Time{21}, Time{0}}}, {}, pairs);
  const auto pair = [&](int forward) {
    return costs.duration(op(OpKind::forward, forward, 0), op(OpKind::backward_input, 1, 0))
        .count();
  };
  EXPECT_EQ(pair(0), 25);
  EXPECT_EQ(pair(1), 11 + 21);
}

TEST(Costs, PairScalesInProportionToItsParts) {
  PairCosts pairs;
  pairs.set_default(Time{300});
  const Costs costs(kTwoStages, {{2, 1}, {1, 3}, {1, 1}, {1, 1}}, pairs);
  // (10*2 + 21*3 + 31*1) / (10 + 21 + 31) of 300
  EXPECT_EQ(costs.duration(op(OpKind::forward, 0, 0), op(OpKind::backward, 1, 1)).count(), 552);
  EXPECT_EQ(costs.duration(op(OpKind::forward, 0, 1), op(OpKind::backward, 1, 0)).count(), 300);
}

TEST(Costs, PairOfPartsThatCostNothingKeepsItsCost) {
  PairCosts pairs;
  pairs.set_default(Time{7});
  const Costs costs({StageCost{}}, {{2}, {2}, {2}, {2}}, pairs);
  EXPECT_EQ(costs.duration(op(OpKind::forward, 0, 0), op(OpKind::backward, 0, 0)).count(), 7);
}

TEST(Links, LatencyAndOccupancy) {
  const Links same(Time{5}, 50e9);
  EXPECT_EQ(same.latency(0, 1).count(), 5);
  EXPECT_EQ(same.latency(1, 1).count(), 0);
  EXPECT_EQ(same.occupancy(Bytes{50'000}).count(), 1'000);
  EXPECT_EQ(same.longest_latency().count(), 5);
  EXPECT_EQ(Links(Time{5}).occupancy(Bytes{50'000}).count(), 0);
  EXPECT_EQ(Links(Time{0}, 1e-3).occupancy(Bytes{1'000'000'000'000}).count(),
            std::int64_t{1} << 62);
  const Links table(2, {Time{0}, Time{3}, Time{4}, Time{0}}, 0);
  EXPECT_EQ(table.latency(0, 1).count(), 3);
  EXPECT_EQ(table.latency(1, 0).count(), 4);
  EXPECT_EQ(table.longest_latency().count(), 4);
}

Problem three_stages(std::vector<std::uint8_t> frozen) {
  Problem problem;
  problem.placement = Placement(PlacementKind::loop, 3, 1);
  problem.graph = StageGraph::chain(3);
  problem.microbatches = 2;
  problem.costs = Costs(std::vector<StageCost>(3, {Time{1}, Time{2}, Time{3}}));
  problem.memory.assign(3, {Bytes{100}, Bytes{30}});
  problem.frozen = std::move(frozen);
  return problem;
}

TEST(ProblemMemory, IsFreedInPartsAndAddsUp) {
  const Problem problem = three_stages({0, 0, 0});
  EXPECT_EQ(problem.allocated(op(OpKind::forward, 0, 0)).value, 100);
  EXPECT_EQ(problem.allocated(op(OpKind::backward, 0, 0)).value, 0);
  EXPECT_EQ(problem.freed(op(OpKind::forward, 0, 0)).value, 0);
  EXPECT_EQ(problem.freed(op(OpKind::backward_input, 0, 0)).value, 70);
  EXPECT_EQ(problem.freed(op(OpKind::backward_weight, 0, 0)).value, 30);
  EXPECT_EQ(problem.freed(op(OpKind::backward, 0, 0)).value, 100);
}

TEST(ProblemMemory, ScaledPartsAddUpExactly) {
  Problem problem = three_stages({0, 0, 0});
  problem.memory.assign(3, {Bytes{101}, Bytes{33}});
  problem.costs = Costs(problem.costs.stages(), {{1, 1}, {1, 1}, {1, 1}, {0.35, 1.515}});
  for (const Microbatch microbatch : {0, 1}) {
    EXPECT_EQ(problem.allocated(op(OpKind::forward, 1, microbatch)),
              problem.freed(op(OpKind::backward_input, 1, microbatch)) +
                  problem.freed(op(OpKind::backward_weight, 1, microbatch)));
    EXPECT_EQ(problem.allocated(op(OpKind::forward, 1, microbatch)),
              problem.freed(op(OpKind::backward, 1, microbatch)));
  }
  EXPECT_EQ(problem.allocated(op(OpKind::forward, 1, 0)).value, 35);
}

TEST(ProblemMemory, FrozenStageFreesAllWithItsInputGradient) {
  const Problem problem = three_stages({0, 1, 0});
  EXPECT_FALSE(problem.needs_backward_weight(1));
  EXPECT_TRUE(problem.needs_backward_input(1));
  EXPECT_EQ(problem.freed(op(OpKind::backward_input, 1, 0)).value, 100);
}

TEST(ProblemMemory, StageBeforeTheFirstTrainableOneFreesAllWithItsForward) {
  const Problem problem = three_stages({1, 1, 0});
  EXPECT_FALSE(problem.needs_backward_input(0));
  EXPECT_FALSE(problem.needs_backward_input(1));
  EXPECT_TRUE(problem.needs_backward_input(2));
  EXPECT_EQ(problem.freed(op(OpKind::forward, 1, 0)).value, 100);
}

TEST(ProblemMemory, ForwardOnlyFreesAllWithItsForward) {
  Problem problem = three_stages({0, 0, 0});
  problem.forward_only = true;
  EXPECT_FALSE(problem.needs_backward_input(2));
  EXPECT_FALSE(problem.needs_backward_weight(2));
  EXPECT_EQ(problem.freed(op(OpKind::forward, 2, 0)).value, 100);
}

TEST(ProblemGradient, FollowsTheGraphNotTheNumbering) {
  Problem problem = three_stages({0, 1, 1});
  problem.graph = StageGraph(3, {{0, 2}});
  EXPECT_FALSE(problem.needs_backward_input(1));  // fed by nothing trainable
  EXPECT_TRUE(problem.needs_backward_input(2));
}

TEST(ProblemDuration, OfAnOpAndOfAPair) {
  const Problem problem = three_stages({0, 0, 0});
  EXPECT_EQ(problem.duration({op(OpKind::forward, 0, 0), {}}).count(), 1);
  EXPECT_EQ(problem.duration({op(OpKind::forward, 0, 0), op(OpKind::backward, 1, 0)}).count(), 6);
  EXPECT_EQ(problem.duration({op(OpKind::forward, 0, 0), op(OpKind::backward_input, 1, 0)}).count(),
            3);
}

}  // namespace
}  // namespace counterflow
