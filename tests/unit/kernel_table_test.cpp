#include "scheduler/passes/kernel_table.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tests/support/orders.h"
#include "tests/support/problems.h"

namespace counterflow {
namespace {

using testing::op;
using testing::set_pair_cost;
using testing::uniform_problem;

Problem chain(int m = 4) {
  Problem problem = uniform_problem(PlacementKind::loop, 2, 1, m, Time{10}, Time{8}, Time{5});
  problem.memory.assign(2, StageMemory{Bytes{100}, Bytes{30}});
  return problem;
}

Slot single(const char* text) {
  return {op(text), {}};
}

TEST(KernelTable, SharesAKernelBetweenMicrobatches) {
  const Problem problem = chain();
  KernelTable table(problem);
  EXPECT_EQ(table.of(single("0F0")), table.of(single("0F3")));
  EXPECT_NE(table.of(single("0F0")), table.of(single("1F0")));
  EXPECT_NE(table.of(single("0F0")), table.of(single("0B0")));
  EXPECT_EQ(std::move(table).take().size(), 3U);
}

TEST(KernelTable, KnowsCostAndMemoryOfEachKind) {
  const Problem problem = chain();
  KernelTable table(problem);
  for (const char* text : {"1F0", "1B0", "1I0", "1W0"}) static_cast<void>(table.of(single(text)));
  const std::vector<Kernel> kernels = std::move(table).take();
  ASSERT_EQ(kernels.size(), 4U);
  const auto expect = [&](std::size_t index, OpKind kind, std::int64_t time, std::int64_t allocates,
                          std::int64_t frees) {
    EXPECT_EQ(kernels[index].kind, kind);
    EXPECT_EQ(kernels[index].stage, 1);
    EXPECT_EQ(kernels[index].duration, Time{time});
    EXPECT_EQ(kernels[index].allocates, Bytes{allocates});
    EXPECT_EQ(kernels[index].frees, Bytes{frees});
  };
  expect(0, OpKind::forward, 10, 100, 0);
  expect(1, OpKind::backward, 13, 0, 100);
  expect(2, OpKind::backward_input, 8, 0, 70);
  expect(3, OpKind::backward_weight, 5, 0, 30);
}

TEST(KernelTable, OfAPairHasItsCostAndBothMemories) {
  Problem problem = chain();
  set_pair_cost(problem, Time{15});
  KernelTable table(problem);
  const std::uint32_t pair = table.of({op("0F2"), op("1B1")});
  EXPECT_EQ(table.of({op("0F3"), op("1B2")}), pair);
  EXPECT_NE(table.of({op("1F3"), op("0B2")}), pair);
  const Kernel kernel = std::move(table).take()[pair];
  EXPECT_EQ(kernel.kind, OpKind::forward);
  EXPECT_EQ(kernel.paired_kind, OpKind::backward);
  EXPECT_EQ(kernel.paired_stage, 1);
  EXPECT_EQ(kernel.duration, Time{15});
  EXPECT_EQ(kernel.allocates, Bytes{100});
  EXPECT_EQ(kernel.frees, Bytes{100});
}

TEST(KernelTable, TellsReplicasApart) {
  const Problem problem =
      uniform_problem(PlacementKind::bidirectional, 2, 1, 4, Time{1}, Time{1}, Time{1});
  KernelTable table(problem);
  EXPECT_NE(table.of(single("0F0")), table.of(single("~0F2")));
}

TEST(KernelTable, SeparatesMicrobatchesOfDifferentCost) {
  Problem problem = chain(3);
  const std::vector<double> factors = {1, 2, 1};
  problem.costs = Costs(problem.costs.stages(), {factors, factors, factors, factors});
  KernelTable table(problem);
  const std::uint32_t first = table.of(single("0F0"));
  const std::uint32_t longer = table.of(single("0F1"));
  EXPECT_NE(first, longer);
  EXPECT_EQ(table.of(single("0F2")), first);
  const std::vector<Kernel> kernels = std::move(table).take();
  EXPECT_EQ(kernels[longer].duration, Time{20});
  EXPECT_EQ(kernels[longer].allocates, Bytes{200});
}

TEST(KernelTable, SeparatesMicrobatchesOfDifferentMemoryAlone) {
  Problem problem = chain(2);
  const std::vector<double> same = {1, 1};
  problem.costs = Costs(problem.costs.stages(), {same, same, same, {1, 3}});
  KernelTable table(problem);
  EXPECT_NE(table.of(single("0F0")), table.of(single("0F1")));
}

TEST(KernelTable, StageActionsCostNothing) {
  const Problem problem = chain();
  KernelTable table(problem);
  const std::uint32_t unshard = table.of(single("0UNSHARD"));
  EXPECT_EQ(std::move(table).take()[unshard].duration, Time{0});
}

}  // namespace
}  // namespace counterflow
