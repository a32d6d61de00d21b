#include <gtest/gtest.h>

#include <string>

#include "scheduler/ir/schedule_file.h"
#include "scheduler/verify/verify.h"
#include "tests/support/orders.h"
#include "tests/support/problems.h"

namespace counterflow {
namespace {

using testing::text;
using testing::uniform_problem;

std::string faults(int microbatches, const std::string& rows) {
  const Problem problem =
      uniform_problem(PlacementKind::loop, 1, 2, microbatches, Time{1}, Time{1}, Time{1});
  return text(verify(problem, parse_schedule(rows, "order.csv")));
}

TEST(ReductionRule, ReductionBeforeTheLastWeightGradient) {
  EXPECT_EQ(
      faults(2, "0F0,1F0,1I0,1W0,0I0,0W0,0F1,1F1,1I1,1REDUCE_GRAD,1W1,0I1,0W1,0REDUCE_GRAD\n"),
      "reduction rank 0 [9] 1REDUCE_GRAD: stands before 1W1, whose gradients "
      "it misses\n");
  EXPECT_EQ(faults(1, "0F0,1F0,1B0,1REDUCE_GRAD,0REDUCE_GRAD,0B0\n"),
            "reduction rank 0 [4] 0REDUCE_GRAD: stands before 0B0, whose gradients "
            "it misses\n");
}

TEST(ReductionRule, ReductionTwice) {
  EXPECT_EQ(faults(1, "0F0,1F0,1B0,0B0,0REDUCE_GRAD,0REDUCE_GRAD,1REDUCE_GRAD\n"),
            "reduction rank 0 [5] 0REDUCE_GRAD: reduces the same gradients a second time\n");
}

TEST(ReductionRule, AnInputGradientMayFollow) {
  EXPECT_EQ(faults(1, "0F0,1F0,1I0,1W0,1REDUCE_GRAD,0I0,0W0,0REDUCE_GRAD\n"), "");
}

TEST(ShardingRule, ComputeOnAShardedStage) {
  EXPECT_EQ(faults(1, "0UNSHARD,0F0,0RESHARD,1F0,1B0,0B0\n"),
            "sharding rank 0 [5] 0B0: runs while stage 0 is sharded; unshard it before\n");
  EXPECT_EQ(faults(1, "0F0,0UNSHARD,1F0,1B0,0B0\n"),
            "sharding rank 0 [0] 0F0: runs while stage 0 is sharded; unshard it before\n");
}

TEST(ShardingRule, AStageMayBeUnshardedAgain) {
  const std::string rows = "0UNSHARD,0F0,0RESHARD,1F0,1B0,0UNSHARD,0B0,0RESHARD\n";
  EXPECT_EQ(faults(1, rows), "");
  EXPECT_TRUE(advice(parse_schedule(rows, "order.csv")).empty());
}

TEST(Advice, NamesStagesThatAreNeverResharded) {
  const auto said = advice(parse_schedule("0UNSHARD,0F0,0RESHARD\n1UNSHARD,1F0\n", "order.csv"));
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(said[0], "rank 1: stage 1 unsharded, never resharded");
}

// Positions count every action of the row, whatever rule finds the fault.
TEST(FilePositions, CountAllActions) {
  EXPECT_EQ(faults(1, "0UNSHARD,1UNSHARD,0F0,1F0,0B0,1B0\n"),
            "order rank 0 [4] 0B0: comes before 1B0, which it needs\n");
}

}  // namespace
}  // namespace counterflow
