#include "scheduler/graph/evaluate.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/orders.h"
#include "tests/support/problems.h"

namespace counterflow {
namespace {

using testing::order;
using testing::set_pair_cost;
using testing::uniform_problem;
using Begins = std::vector<std::vector<std::int64_t>>;

// F 10, I 8, W 5.
Problem chain(int p, int m, Time latency = Time{0}) {
  return uniform_problem(PlacementKind::loop, p, 1, m, Time{10}, Time{8}, Time{5}, latency);
}

Begins begins(const Evaluation& evaluation) {
  Begins result;
  for (const auto& rank : evaluation.begins) {
    result.emplace_back();
    for (const Time at : rank) result.back().push_back(at.count());
  }
  return result;
}

void expect_times(const Problem& problem, const std::string& rows, const Begins& expected,
                  std::int64_t makespan) {
  Evaluator evaluator(problem);
  const Schedule schedule = order(rows);
  const Evaluation evaluation = evaluator.evaluate(schedule);
  EXPECT_TRUE(evaluation.complete);
  EXPECT_EQ(begins(evaluation), expected);
  EXPECT_EQ(evaluation.makespan.count(), makespan);
  EXPECT_EQ(evaluator.makespan(schedule).count(), makespan);
}

constexpr const char* kTwoByTwo = "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n";

TEST(Evaluate, TwoRanksAndTwoMicrobatchesOf1F1B) {
  expect_times(chain(2, 2), kTwoByTwo, {{0, 10, 33, 56}, {10, 20, 33, 43}}, 69);
}

TEST(Evaluate, LatencyDelaysEveryHop) {
  expect_times(chain(2, 2, Time{3}), kTwoByTwo, {{0, 10, 39, 62}, {13, 23, 36, 46}}, 75);
}

TEST(Evaluate, LatencyTableHasADirection) {
  Problem problem = chain(2, 2);
  // There 4, back 0.
  problem.links = Links(2, {Time{0}, Time{4}, Time{0}, Time{0}}, 0);
  expect_times(problem, kTwoByTwo, {{0, 10, 37, 60}, {14, 24, 37, 47}}, 73);
}

TEST(Evaluate, GradientLeavesAtTheEndOfI) {
  expect_times(chain(2, 1), "0F0,0I0,0W0\n1F0,1I0,1W0\n", {{0, 28, 36}, {10, 20, 28}}, 41);
}

TEST(Evaluate, MessagesOfOneLinkFollowEachOther) {
  Problem problem = chain(2, 2);
  // A byte a nanosecond: an activation takes 25 ns on its link and so does its gradient.
  problem.links = Links(Time{1}, 1e9);
  problem.message = {Bytes{25}, Bytes{99}};
  // Rank 0 ends F0 at 10 and F1 at 20; on the link 10..35 and 35..60.
  // Rank 1: F0 36..46, B0 46..59, F1 61..71, B1 71..84. Back: 59..84, 84..109.
  expect_times(problem, kTwoByTwo, {{0, 10, 85, 110}, {36, 46, 61, 71}}, 123);
}

TEST(Evaluate, BothDirectionsOfALinkAreApart) {
  Problem problem = chain(2, 2);
  problem.links = Links(Time{0}, 1e9);
  problem.message = {Bytes{40}, Bytes{0}};
  // There 10..50 and 50..90; back 73..113, though the other direction is busy until 90.
  expect_times(problem, kTwoByTwo, {{0, 10, 113, 153}, {50, 60, 90, 100}}, 166);
}

TEST(Evaluate, AHopInsideARankIsFree) {
  Problem problem = uniform_problem(PlacementKind::v, 2, 2, 1, Time{10}, Time{8}, Time{5}, Time{3});
  problem.links = Links(Time{3}, 1e9);
  problem.message.assign(4, Bytes{2});
  // 0F0 0..10, hop 5, 1F0 15..25, 2F0 25..35, hop 5, 3F0 40..50, 3B0 50..63, hop 5 and so on.
  expect_times(problem, "0F0,3F0,3B0,0B0\n1F0,2F0,2B0,1B0\n", {{0, 40, 50, 99}, {15, 25, 68, 81}},
               112);
}

TEST(Evaluate, AStageWaitsForAllItsInputs) {
  Problem problem = chain(3, 1);
  problem.graph = StageGraph(3, {{0, 1}, {1, 2}, {0, 2}});
  problem.links = Links(3,
                        {Time{0}, Time{1}, Time{50},  //
                         Time{1}, Time{0}, Time{1},   //
                         Time{50}, Time{1}, Time{0}},
                        0);
  // The skip link is the slow way, there and back: 2 begins at 10+50, 0's B at 83+50.
  expect_times(problem, "0F0,0B0\n1F0,1B0\n2F0,2B0\n", {{0, 133}, {11, 84}, {60, 70}}, 146);
}

TEST(Evaluate, FactorsScaleEachMicrobatch) {
  Problem problem = chain(2, 2);
  const std::vector<double> longer = {1, 2};
  problem.costs = Costs(problem.costs.stages(), {longer, longer, longer, {}});
  // Microbatch 1 takes F 20 and B 26.
  expect_times(problem, kTwoByTwo, {{0, 10, 33, 79}, {10, 20, 33, 53}}, 105);
}

TEST(Evaluate, AFrozenPrefixSendsNothingBack) {
  Problem problem = chain(2, 2);
  problem.frozen = {1, 0};
  expect_times(problem, "0F0,0F1\n1F0,1B0,1F1,1B1\n", {{0, 10}, {10, 20, 33, 43}}, 56);
}

TEST(Evaluate, AFrozenStageInTheMiddlePassesTheGradientOn) {
  Problem problem = chain(3, 1);
  problem.frozen = {0, 1, 0};
  expect_times(problem, "0F0,0B0\n1F0,1I0\n2F0,2B0\n", {{0, 51}, {10, 43}, {20, 30}}, 64);
}

TEST(Evaluate, APairBeginsWithBothInputsAndGivesBothOutputsAtItsEnd) {
  Problem problem = chain(2, 2, Time{1});
  set_pair_cost(problem, Time{15});
  // Rank 1: F0 11..21; the pair waits for F1's input at 21, runs 21..36.
  expect_times(problem, "0F0,0F1,0B0,0B1\n1F0,(1F1;1B0)OVERLAP_F_B,1B1\n",
               {{0, 10, 37, 50}, {11, 21, 36}}, 63);
}

TEST(Evaluate, OfForwardOnly) {
  Problem problem = chain(2, 2);
  problem.forward_only = true;
  expect_times(problem, "0F0,0F1\n1F0,1F1\n", {{0, 10}, {10, 20}}, 30);
}

TEST(Evaluate, OneRankRunsWithoutGaps) {
  expect_times(chain(1, 2), "0F0,0B0,0F1,0I1,0W1\n", {{0, 10, 23, 33, 41}}, 46);
}

TEST(Evaluate, OfNothingIsZero) {
  const Problem problem = chain(2, 1);
  const Schedule nothing{"nothing", {{}, {}}};
  EXPECT_TRUE(Evaluator(problem).evaluate(nothing).complete);
  EXPECT_EQ(Evaluator(problem).evaluate(nothing).makespan, Time{0});
  EXPECT_EQ(Evaluator(problem).makespan(nothing), Time{0});
}

TEST(Evaluate, LeastDurationSeparatesProducerAndConsumer) {
  Problem problem =
      uniform_problem(PlacementKind::loop, 2, 1, 1, Time{0}, Time{0}, Time{0}, Time{0});
  const Schedule schedule = order("0F0,0B0\n1F0,1B0\n");
  EXPECT_EQ(begins(Evaluator(problem).evaluate(schedule)), (Begins{{0, 0}, {0, 0}}));
  EXPECT_EQ(begins(Evaluator(problem, Time{1}).evaluate(schedule)), (Begins{{0, 3}, {1, 2}}));
}

TEST(Evaluate, OneObjectServesManySchedules) {
  const Problem problem = chain(2, 2);
  Evaluator evaluator(problem);
  EXPECT_EQ(evaluator.makespan(order(kTwoByTwo)), Time{69});
  EXPECT_EQ(evaluator.makespan(order("0B0\n1F0\n")), Time{-1});
  // Rank 1 begins with microbatch 1: 20..30, then 0: 30..40, B0 40..53, B1 53..66.
  EXPECT_EQ(evaluator.makespan(order("0F0,0F1,0B0,0B1\n1F1,1F0,1B0,1B1\n")), Time{79});
  EXPECT_EQ(evaluator.makespan(order(kTwoByTwo)), Time{69});
}

// ---- Orders that do not complete ----------------------------------------------------------------

void expect_incomplete(const Problem& problem, const std::string& rows) {
  Evaluator evaluator(problem);
  EXPECT_FALSE(evaluator.evaluate(order(rows)).complete) << rows;
  EXPECT_EQ(evaluator.makespan(order(rows)), Time{-1}) << rows;
}

TEST(IncompleteOrder, Deadlock) {
  // Each rank waits for the other's second op.
  const std::string rows = "0F0,0B0,0F1,0B1\n1F1,1F0,1B0,1B1\n";
  expect_incomplete(chain(2, 2), rows);
  const Problem problem = chain(2, 2);
  const Evaluation evaluation = Evaluator(problem).evaluate(order(rows));
  EXPECT_EQ(begins(evaluation), (Begins{{0, -1, -1, -1}, {-1, -1, -1, -1}}));
}

TEST(IncompleteOrder, BackwardBeforeItsForward) {
  expect_incomplete(chain(1, 1), "0B0,0F0\n");
  expect_incomplete(chain(1, 1), "0F0,0W0,0I0\n");
}

TEST(IncompleteOrder, AnInputThatNobodyMakes) {
  expect_incomplete(chain(2, 1), "\n1F0,1B0\n");
  expect_incomplete(chain(2, 1), "0F0,0B0\n1F0\n");
}

TEST(IncompleteOrder, AMissingOpNobodyWaitsForIsNoMatter) {
  const Problem problem = chain(1, 1);
  EXPECT_TRUE(Evaluator(problem).evaluate(order("0F0,0I0\n")).complete);
}

TEST(IncompleteOrder, HasNoMakespanInEitherForm) {
  const Problem problem = chain(2, 2);
  EXPECT_EQ(Evaluator(problem).evaluate(order("0F0,0B0,0F1,0B1\n1F1,1F0,1B0,1B1\n")).makespan,
            Time{-1});
  EXPECT_EQ(Evaluator(problem).evaluate(order("\n1F0,1B0\n")).makespan, Time{-1});
}

}  // namespace
}  // namespace counterflow
