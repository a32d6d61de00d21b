// The parts that the bounds are made of.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "scheduler/bounds/area.h"
#include "scheduler/bounds/edge_finding.h"
#include "scheduler/bounds/jackson.h"
#include "scheduler/bounds/lines.h"
#include "scheduler/bounds/lower_bound.h"
#include "scheduler/bounds/memory_waits.h"
#include "scheduler/bounds/windows.h"
#include "tests/support/problems.h"
#include "tests/support/random_problems.h"

namespace counterflow {
namespace {

using testing::draw;
using testing::uniform_problem;

constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();

// The least makespan over all orders of the ops.
std::int64_t best_order(std::vector<MachineOp> ops) {
  std::vector<std::size_t> order(ops.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::int64_t best = kNone;
  do {
    std::int64_t now = 0;
    std::int64_t end = 0;
    for (const std::size_t i : order) {
      now = std::max(now, ops[i].head) + ops[i].duration;
      end = std::max(end, now + ops[i].tail);
    }
    best = std::min(best, end);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

TEST(Jackson, IsNeverAboveTheBestOrderAndMeetsItWhereNothingNeedsInterrupting) {
  std::mt19937_64 random(31);
  int met = 0;
  for (int round = 0; round < 500; ++round) {
    std::vector<MachineOp> ops;
    for (auto n = draw(random, 1, 6); n > 0; --n) {
      ops.push_back({draw(random, 0, 20), draw(random, 0, 9), draw(random, 0, 20)});
    }
    const std::int64_t best = best_order(ops);
    const std::int64_t bound = jackson_preemptive(ops);
    EXPECT_LE(bound, best);
    met += bound == best ? 1 : 0;
  }
  EXPECT_GT(met, 350);
}

TEST(Jackson, InterruptsForTheLongerTail) {
  // The op of length 10 gives way at 4 to the one whose tail is 20: 4 + 2 + 20.
  std::vector<MachineOp> ops{{0, 10, 5}, {4, 2, 20}};
  EXPECT_EQ(jackson_preemptive(ops), 26);
}

// Every begin of an op in any order that keeps all windows.
std::vector<std::int64_t> least_begins(const std::vector<TimedOp>& ops) {
  std::vector<std::size_t> order(ops.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::vector<std::int64_t> least(ops.size(), kNone);
  do {
    std::int64_t now = 0;
    bool fits = true;
    std::vector<std::int64_t> begins(ops.size());
    for (const std::size_t i : order) {
      begins[i] = std::max(now, ops[i].earliest);
      now = begins[i] + ops[i].duration;
      fits &= now <= ops[i].latest;
    }
    for (std::size_t i = 0; fits && i < ops.size(); ++i) least[i] = std::min(least[i], begins[i]);
  } while (std::next_permutation(order.begin(), order.end()));
  return least;
}

TEST(EdgeFinding, RaisesNoBeginAboveWhatSomeOrderHas) {
  std::mt19937_64 random(32);
  int raised = 0;
  int refuted = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<TimedOp> ops;
    for (std::uint32_t id = 0; id < 5; ++id) {
      const std::int64_t earliest = draw(random, 0, 15);
      const std::int64_t duration = draw(random, 0, 6);
      ops.push_back({earliest, earliest + duration + draw(random, 0, 18), duration, id});
    }
    const std::vector<TimedOp> before = ops;
    const std::vector<std::int64_t> least = least_begins(ops);
    if (!find_edges(ops)) {
      ++refuted;
      EXPECT_EQ(least[0], kNone);
      continue;
    }
    for (const TimedOp& op : ops) {
      EXPECT_GE(op.earliest, before[op.id].earliest);
      EXPECT_LE(op.earliest, least[op.id]);
      raised += op.earliest > before[op.id].earliest ? 1 : 0;
    }
  }
  EXPECT_GT(raised, 100);
  EXPECT_GT(refuted, 50);
}

// Two stages a rank, one microbatch and a half fit: the next F of the first stage waits until the
// gradient of the last microbatch has come back to the rank's last stage.
TEST(MemoryWaits, KeepARankFromFillingUpWithItsFirstStage) {
  Problem problem = uniform_problem(PlacementKind::v, 2, 2, 4, Time{10}, Time{10}, Time{10});
  problem.limits.activations = {2, 2};
  Lines lines(problem);
  add_memory_waits(problem, lines);
  const Windows windows = longest_paths(lines);
  const std::uint32_t forward = lines.find(OpKind::forward, {0, 0});
  // F of stages 0..3 and I of stage 3: 50 before the next may begin.
  EXPECT_EQ(windows.head[lines.op(forward, 1)], 50);
}

TEST(MemoryWaits, OfOneStageCountWhatWKeeps) {
  Problem problem = uniform_problem(PlacementKind::loop, 1, 1, 6, Time{1}, Time{1}, Time{1});
  problem.memory = {{Bytes{10}, Bytes{4}}};
  problem.limits.bytes = {Bytes{20}};
  Lines lines(problem);
  add_memory_waits(problem, lines);
  const std::uint32_t forward = lines.find(OpKind::forward, {0, 0});
  std::vector<std::string> waits;
  for (const Line::Wait& wait : lines[forward].waits) {
    waits.push_back(std::to_string(static_cast<int>(lines[wait.line].kind)) + " " +
                    std::to_string(wait.shift));
  }
  // In order; two whole activations fit; and besides one whole two residues, not three.
  const std::vector<std::string> expected{"1 1", "3 2", "4 3"};
  EXPECT_EQ(waits, expected);
}

TEST(AreaBound, IsTheTimeTheMemoryNeeds) {
  Problem problem = uniform_problem(PlacementKind::loop, 2, 1, 6, Time{10}, Time{10}, Time{5});
  problem.limits.activations = {1, 1};
  const Lines lines(problem);
  // Rank 0 holds each of six microbatches from its F to its W: 4 ops of 10 and one of 5.
  EXPECT_EQ(area_bound(problem, lines, longest_paths(lines)), 270);
}

TEST(WindowBound, KnowsThatOneMicrobatchMustBeLetGoFirst) {
  Problem problem = uniform_problem(PlacementKind::v, 2, 2, 4, Time{10}, Time{10}, Time{10});
  problem.limits.activations = {2, 2};
  const LowerBound bound = best_lower_bound(problem, BoundEffort::full);
  // Until F of stage 0 may begin again one W of the rank has to run beside F, F, F, F, I.
  EXPECT_EQ(bound.argument, "windows");
  EXPECT_GE(bound.value, Time{3 * 60 + 90});
}

// Where nothing can be scheduled the bound is still a number, and soon.
TEST(WindowBound, EndsWhereNoScheduleExists) {
  Problem problem = uniform_problem(PlacementKind::v, 2, 2, 4, Time{10}, Time{10}, Time{10});
  problem.limits.activations = {1, 1};
  EXPECT_GT(lower_bound(problem, BoundEffort::full), Time{0});
  problem.limits.activations = {0, 0};
  EXPECT_GT(lower_bound(problem, BoundEffort::full), Time{0});
}

TEST(LowerBoundEffort, MoreIsNeverLess) {
  testing::RandomProblems problems(33);
  for (int round = 0; round < 300; ++round) {
    const Problem problem = problems.next().problem;
    if (problem.stages() * problem.microbatches > 100) continue;
    EXPECT_LE(lower_bound(problem, BoundEffort::quick), lower_bound(problem, BoundEffort::full));
  }
}

TEST(LowerBoundEffort, TimesThatGrowAlikeMoveTheBoundAlike) {
  Problem problem =
      uniform_problem(PlacementKind::v, 3, 2, 6, Time{10}, Time{12}, Time{7}, Time{1});
  problem.limits.activations.assign(3, 4);
  const Time once = lower_bound(problem, BoundEffort::full);
  problem.costs = Costs(std::vector<StageCost>(6, {Time{10'000}, Time{12'000}, Time{7'000}}));
  problem.links = Links(Time{1000});
  EXPECT_EQ(lower_bound(problem, BoundEffort::full), 1000 * once);
}

}  // namespace
}  // namespace counterflow
