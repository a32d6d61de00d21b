#include "scheduler/ir/execution_model.h"

#include <gtest/gtest.h>

namespace counterflow {
namespace {

TEST(ExecutionModel, IdealCountsNothingButLatencyAndBandwidth) {
  const ExecutionModel ideal = ExecutionModel::ideal();
  EXPECT_EQ(ideal.name, "ideal");
  EXPECT_EQ(ideal.semantics, Semantics::buffered);
  EXPECT_TRUE(ideal.independent_transfers);
  EXPECT_FALSE(ideal.serial_communicators);
  EXPECT_EQ(ideal.launch_order, LaunchOrder::independent);
  EXPECT_EQ(ideal.hardware_queues, 0);
}

TEST(ExecutionModel, NcclBlocksBothEndsAndKeepsLaunchOrder) {
  const ExecutionModel nccl = ExecutionModel::nccl();
  EXPECT_EQ(nccl.semantics, Semantics::rendezvous);
  EXPECT_FALSE(nccl.independent_transfers);
  EXPECT_TRUE(nccl.serial_communicators);
  EXPECT_EQ(nccl.launch_order, LaunchOrder::chained);
}

TEST(ExecutionModel, GlooWaitsForAPostedReceive) {
  const ExecutionModel gloo = ExecutionModel::gloo();
  EXPECT_EQ(gloo.semantics, Semantics::posted);
  EXPECT_FALSE(gloo.independent_transfers);
  EXPECT_FALSE(gloo.serial_communicators);
}

TEST(ExecutionModel, PresetsAreFoundByTheirName) {
  for (const char* known : {"ideal", "nccl", "gloo"}) {
    ASSERT_TRUE(ExecutionModel::preset(known)) << known;
    EXPECT_EQ(ExecutionModel::preset(known)->name, known);
  }
  EXPECT_EQ(ExecutionModel::preset("ideal"), ExecutionModel::ideal());
  EXPECT_EQ(ExecutionModel::preset("NCCL"), std::nullopt);
  EXPECT_EQ(ExecutionModel::preset(""), std::nullopt);
}

TEST(ExecutionModel, NamesReadBack) {
  for (const Semantics semantics : kAllSemantics) {
    EXPECT_EQ(semantics_named(name(semantics)), semantics);
  }
  for (const LaunchOrder order :
       {LaunchOrder::independent, LaunchOrder::chained, LaunchOrder::serial}) {
    EXPECT_EQ(launch_order_named(name(order)), order);
  }
  EXPECT_EQ(semantics_named("eager"), std::nullopt);
  EXPECT_EQ(launch_order_named("buffered"), std::nullopt);
}

}  // namespace
}  // namespace counterflow
