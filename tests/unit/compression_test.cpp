#include "scheduler/problem/compression.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "report/report.h"
#include "scheduler/bounds/lower_bound.h"
#include "scheduler/graph/evaluate.h"
#include "scheduler/ir/schedule_file.h"
#include "scheduler/passes/compile.h"
#include "scheduler/problem/config.h"
#include "scheduler/verify/verify.h"
#include "schedules/registry.h"
#include "simulator/simulate.h"
#include "tests/support/orders.h"
#include "tests/support/random_problems.h"

// What `links.compress` makes of a problem and its program.
namespace counterflow {
namespace {

constexpr std::string_view kFour = R"(pipeline: {ranks: 4, microbatches: 6, schedule: 1f1b}
stages: {forward: 1ms, backward_input: 2ms, backward_weight: 3ms}
links: {bandwidth: 1GB/s, message: 1056000B}
)";

Problem make(const Overrides& overrides, PlacementKind kind = PlacementKind::loop, int chunks = 1) {
  const Config config = parse_config(kFour, "model.yaml", overrides);
  return make_problem(config, {Placement(kind, config.ranks.value, chunks), false});
}

Time us(std::int64_t count) {
  return std::chrono::microseconds(count);
}

TEST(Compression, IsOfBothDirectionsOrOfEach) {
  const Problem both = make({"links.compress=bf16"});
  EXPECT_EQ(both.compression.activations, DataType::bf16);
  EXPECT_EQ(both.compression.gradients, DataType::bf16);
  const Problem each = make({"links.compress={activations: fp8, gradients: bf16}"});
  EXPECT_EQ(each.wire_type(1, 2), DataType::fp8);
  EXPECT_EQ(each.wire_type(2, 1), DataType::bf16);
  const Problem one = make({"links.compress={gradients: fp8}"});
  EXPECT_EQ(one.wire_type(1, 2), DataType::bytes);
  EXPECT_EQ(one.wire_size(1, 2), Bytes{1'056'000});
  EXPECT_EQ(one.wire_size(2, 1), Bytes{264'000 + 4 * 2063});
  EXPECT_FALSE(make({}).compression.any());
}

TEST(Compression, HopsCarryWhatIsOnTheWire) {
  EXPECT_EQ(make({}).hop(1, 2, 0), us(1056));
  const Problem problem = make({"links.compress={activations: bf16}"});
  EXPECT_EQ(problem.hop(1, 2, 0), us(528));
  EXPECT_EQ(problem.hop(2, 1, 0), us(1056));
}

TEST(Compression, PackingTakesTimeOfWhoSendsAndWhoReceives) {
  const Problem free = make({"links.compress=fp8"});
  EXPECT_EQ(free.costs.stages()[1].forward, us(1000));
  const Problem problem = make({"links.compress={activations: fp8, gradients: bf16, rate: 8GB/s}"});
  const auto& costs = problem.costs.stages();
  // 132 us a message: the first stage sends one, those in the middle receive one too.
  EXPECT_EQ(costs[0].forward, us(1132));
  EXPECT_EQ(costs[1].forward, us(1264));
  EXPECT_EQ(costs[3].forward, us(1132));
  EXPECT_EQ(costs[0].backward_input, us(2132));
  EXPECT_EQ(costs[2].backward_input, us(2264));
  EXPECT_EQ(costs[2].backward_weight, us(3000));
  const Problem forward = make({"links.compress={activations: fp8, rate: 8GB/s}"});
  EXPECT_EQ(forward.costs.stages()[1].backward_input, us(2000));
}

TEST(Compression, NothingIsPackedInsideARank) {
  // Stages 3 and 4 share a rank.
  const Problem problem =
      make({"links.compress={activations: bf16, rate: 8GB/s}"}, PlacementKind::v, 2);
  EXPECT_EQ(problem.costs.stages()[2].forward, us(1264));
  EXPECT_EQ(problem.costs.stages()[3].forward, us(1132));
  EXPECT_EQ(problem.costs.stages()[4].forward, us(1132));
}

TEST(Compression, FrozenStagesHaveNoGradientsToPack) {
  const Problem problem =
      make({"links.compress={gradients: bf16, rate: 8GB/s}", "stages.frozen=[0, 1]"});
  const auto& costs = problem.costs.stages();
  EXPECT_EQ(costs[1].backward_input, us(0));
  EXPECT_EQ(costs[2].backward_input, us(2132));  // what comes back from stage 3
  EXPECT_EQ(costs[3].backward_input, us(2132));
}

TEST(Compression, PairsTakeLongerByWhatTheirOpsPack) {
  const Problem problem = make({"links.compress={activations: bf16, rate: 8GB/s}",
                                "stages.overlapped={default: 4ms, pairs: [[0, 0, 5ms]]}"});
  EXPECT_EQ(problem.costs.pairs().find(0, 0), us(5132));
  EXPECT_EQ(problem.costs.pairs().find(1, 1), us(4264));
  EXPECT_GE(problem.costs.pairs().largest(), us(5264));
  const Problem unpaired = make({"links.compress={activations: bf16, rate: 8GB/s}"});
  EXPECT_TRUE(unpaired.costs.pairs().empty());
  EXPECT_EQ(unpaired.costs.pairs().find(1, 1), Time{-1});
}

TEST(Compression, WhatIsMadeAgainIsNotPackedAgain) {
  const Problem problem = make({"links.compress={activations: bf16, rate: 8GB/s}",
                                "stages.activation=1MiB", "stages.recompute={activation: 0}"});
  EXPECT_EQ(problem.costs.stages()[1].forward, us(1264));
  EXPECT_EQ(problem.keeping_options[1].front().restore, us(1000));
}

TEST(Compression, TransfersSayTheirTypeAndSlotsHoldWhatTheyUnpackTo) {
  const Problem problem = make({"links.compress={activations: fp8, gradients: bf16}"});
  const Program program = compile(problem, generate(*find_family("1f1b"), problem));
  EXPECT_TRUE(verify(problem, program).diagnostics.empty());
  int seen = 0;
  for (const RankProgram& rank : program.ranks) {
    for (const Transfer& transfer : rank.transfers) {
      const bool forward = transfer.payload.kind == PayloadKind::activation;
      EXPECT_EQ(transfer.type, forward ? DataType::fp8 : DataType::bf16);
      EXPECT_EQ(transfer.size.value, forward ? 264'000 + 4 * 2063 : 528'000);
      EXPECT_EQ(rank.slots[transfer.slot].size, Bytes{1'056'000});
      ++seen;
    }
  }
  EXPECT_EQ(seen, 3 * 6 * 2 * 2);
}

TEST(Compression, AFileThatBringsItsTransfersIsCompressedToo) {
  Problem problem = make({"links.compress=bf16", "pipeline.ranks=2", "pipeline.microbatches=1"});
  const ScheduleFile file =
      parse_schedule("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n", "file.csv");
  const Program program = import(problem, file);
  EXPECT_TRUE(verify(problem, program).diagnostics.empty());
  EXPECT_EQ(program.ranks[1].transfers[0].type, DataType::bf16);
  EXPECT_EQ(program.ranks[1].transfers[0].size, Bytes{528'000});
}

TEST(Compression, SlotsThatOnlyHoldWhatIsOnTheWireAreFaults) {
  const Problem problem = make({"links.compress=bf16", "pipeline.ranks=2"});
  const Program good = compile(problem, generate(*find_family("1f1b"), problem));
  Program small = good;
  for (BufferSlot& slot : small.ranks[1].slots) {
    if (slot.pool == BufferPool::activations) slot.size = Bytes{528'000};
  }
  const std::string faults = testing::text(verify(problem, small).diagnostics);
  EXPECT_NE(faults.find("moves 1056000 B, slot 0 has 528000 B"), std::string::npos) << faults;
  Program odd = good;
  for (RankProgram& rank : odd.ranks) {
    for (Transfer& transfer : rank.transfers) transfer.size = Bytes{527'999};
  }
  const std::string others = testing::text(verify(problem, odd).diagnostics);
  EXPECT_NE(others.find("moves 527999 B of bf16, which no number of elements packs to"),
            std::string::npos)
      << others;
}

TEST(Compression, EndsThatPackDifferentlyAreFaults) {
  const Problem problem = make({"links.compress=bf16", "pipeline.ranks=2"});
  Program program = compile(problem, generate(*find_family("1f1b"), problem));
  program.ranks[0].transfers[0].type = DataType::bytes;
  const std::string faults = testing::text(verify(problem, program).diagnostics);
  EXPECT_NE(faults.find("sends 528000 B as bytes, but rank 1 expects 528000 B as bf16"),
            std::string::npos)
      << faults;
}

// Evaluator and simulator see the same costs and the same wire, and no bound is above them.
TEST(Compression, FiguresAgree) {
  testing::RandomProblems problems(41);
  std::mt19937_64 random(42);
  int compressed = 0;
  for (int n = 0; n < 150; ++n) {
    auto [family, problem] = problems.next();
    SCOPED_TRACE(family->name);
    for (Bytes& size : problem.message) size = Bytes{4 * testing::draw(random, 0, 300)};
    const auto type = [&] {
      constexpr DataType kTypes[] = {DataType::bytes, DataType::bf16, DataType::fp8};
      return kTypes[testing::draw(random, 0, 2)];
    };
    problem.compression = {type(), type(), testing::draw(random, 0, 1) == 0 ? 0.0 : 1e11};
    problem = with_packing_costs(std::move(problem));
    compressed += problem.compression.any() ? 1 : 0;
    const Schedule schedule = generate(*family, problem);
    const Program program = compile(problem, schedule);
    ASSERT_TRUE(verify(problem, program).diagnostics.empty());
    const Simulation simulation = simulate(program, problem.links, ExecutionModel::ideal());
    const Time makespan = measure(program, simulation.timeline).makespan;
    EXPECT_EQ(makespan, Evaluator(problem).makespan(schedule));
    EXPECT_LE(lower_bound(problem), makespan);
  }
  EXPECT_GT(compressed, 100);
}

}  // namespace
}  // namespace counterflow
