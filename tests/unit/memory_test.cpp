#include "simulator/memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "scheduler/passes/compile.h"
#include "simulator/simulate.h"
#include "tests/support/orders.h"
#include "tests/support/problems.h"

namespace counterflow {
namespace {

using testing::order;
using testing::uniform_problem;
using Samples = std::vector<std::pair<std::int64_t, std::int64_t>>;

// One rank; F 10, I 8, W 5; an activation of 100, of which 30 stay for W.
Problem one_rank(int m) {
  Problem problem = uniform_problem(PlacementKind::loop, 1, 1, m, Time{10}, Time{8}, Time{5});
  problem.memory = {StageMemory{Bytes{100}, Bytes{30}}};
  return problem;
}

Samples samples(const Problem& problem, const char* rows, std::size_t rank = 0) {
  const Program program = compile(problem, order(rows));
  const Simulation run = simulate(program, problem.links, ExecutionModel::ideal());
  Samples result;
  for (const MemorySample& sample : run.timeline.ranks[rank].memory) {
    result.emplace_back(sample.at.count(), sample.held.value);
  }
  return result;
}

TEST(Memory, IsHeldFromTheBeginOfForwardToTheEndOfBackward) {
  EXPECT_EQ(samples(one_rank(1), "0F0,0B0\n"), (Samples{{0, 100}, {23, 0}}));
}

TEST(Memory, OfASplitBackwardGoesInTwoParts) {
  EXPECT_EQ(samples(one_rank(1), "0F0,0I0,0W0\n"), (Samples{{0, 100}, {18, 30}, {23, 0}}));
}

TEST(Memory, FreedAtAnInstantIsUsableAtThatInstant) {
  // B0 ends at 23, when F1 begins: never 200.
  EXPECT_EQ(samples(one_rank(2), "0F0,0B0,0F1,0B1\n"), (Samples{{0, 100}, {23, 100}, {46, 0}}));
}

TEST(Memory, AddsUpOverMicrobatches) {
  EXPECT_EQ(samples(one_rank(2), "0F0,0F1,0I0,0I1,0W0,0W1\n"),
            (Samples{{0, 100}, {10, 200}, {28, 130}, {36, 60}, {41, 30}, {46, 0}}));
}

TEST(Memory, StartsWithWhatIsStatic) {
  Problem problem = uniform_problem(PlacementKind::loop, 2, 1, 1, Time{10}, Time{8}, Time{5});
  problem.memory.assign(2, StageMemory{Bytes{100}, Bytes{30}});
  problem.limits.static_memory = {Bytes{7}, Bytes{1000}};
  EXPECT_EQ(samples(problem, "0F0,0B0\n1F0,1B0\n", 0), (Samples{{0, 107}, {46, 7}}));
  EXPECT_EQ(samples(problem, "0F0,0B0\n1F0,1B0\n", 1),
            (Samples{{0, 1000}, {10, 1100}, {33, 1000}}));
}

TEST(Memory, OfAPairHoldsTheNewBeforeItFreesTheOld) {
  Problem problem = one_rank(2);
  testing::set_pair_cost(problem, Time{15});
  EXPECT_EQ(samples(problem, "0F0,(0F1;0B0)OVERLAP_F_B,0B1\n"),
            (Samples{{0, 100}, {10, 200}, {25, 100}, {38, 0}}));
}

TEST(Memory, OfForwardOnlyIsFreedAtOnce) {
  Problem problem = one_rank(2);
  problem.forward_only = true;
  EXPECT_EQ(samples(problem, "0F0,0F1\n"), (Samples{{0, 100}, {10, 100}, {20, 0}}));
}

TEST(Memory, OfAnOrderWhoseComputesOverlapIsSorted) {
  // Times of a run on two streams: the later instruction ends first.
  Program program = compile(one_rank(2), order("0F0,0B0,0F1,0B1\n"));
  const std::vector<Interval> times = {
      {Time{0}, Time{10}}, {Time{10}, Time{60}}, {Time{20}, Time{30}}, {Time{30}, Time{40}}};
  EXPECT_EQ(memory_over_time(program, program.ranks[0], times),
            (std::vector<MemorySample>{{Time{0}, Bytes{100}},
                                       {Time{20}, Bytes{200}},
                                       {Time{40}, Bytes{100}},
                                       {Time{60}, Bytes{0}}}));
}

TEST(Memory, WhatNeverRanHoldsNothing) {
  Program program = compile(one_rank(1), order("0F0,0B0\n"));
  const std::vector<Interval> times = {{Time{-1}, Time{-1}}, {Time{-1}, Time{-1}}};
  EXPECT_EQ(memory_over_time(program, program.ranks[0], times),
            (std::vector<MemorySample>{{Time{0}, Bytes{0}}}));
}

}  // namespace
}  // namespace counterflow
