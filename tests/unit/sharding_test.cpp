#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/graph/part.h"
#include "scheduler/graph/sharded_parameters.h"
#include "scheduler/ir/schedule_file.h"
#include "scheduler/passes/compile.h"
#include "scheduler/problem/copies.h"
#include "scheduler/verify/verify.h"
#include "simulator/memory.h"
#include "simulator/simulate.h"
#include "tests/support/optimizers.h"
#include "tests/support/orders.h"
#include "tests/support/problems.h"

namespace counterflow {
namespace {

using testing::sharded;
using testing::with_optimizer;

TEST(Part, CutsBetweenElements) {
  EXPECT_EQ(part_of(Bytes{40}, 0, 3), (Part{Bytes{0}, Bytes{12}}));
  EXPECT_EQ(part_of(Bytes{40}, 1, 3), (Part{Bytes{12}, Bytes{12}}));
  EXPECT_EQ(part_of(Bytes{40}, 2, 3), (Part{Bytes{24}, Bytes{16}}));
  // No row of them.
  EXPECT_EQ(part_of(Bytes{5}, 1, 2), (Part{Bytes{2}, Bytes{3}}));
  EXPECT_EQ(part_of(Bytes{0}, 1, 2), (Part{Bytes{0}, Bytes{0}}));
  constexpr std::int64_t kLarge = std::int64_t{1} << 61;
  EXPECT_EQ(part_of(Bytes{kLarge}, 127, 128).first, Bytes{kLarge / 128 * 127});
}

// Two stages on one rank, one microbatch, twice side by side. F takes 10, B 20, a hop 7; stages of
// 200 B have 4 B of gradients.
struct TwoStages {
  explicit TwoStages(const Sharding& sharding, Bytes gradients = Bytes{4}) {
    one = with_optimizer(testing::uniform_problem(PlacementKind::loop, 1, 2, 1, Time{10}, Time{10},
                                                  Time{10}, Time{7}),
                         {.gradients = gradients,
                          .bucket = Bytes{0},
                          .tied = Bytes{0},
                          .step = Time{6},
                          .global_norm = false,
                          .data_parallel = 2,
                          .sharding = sharding});
    for (StageMemory& memory : one.memory) memory = {};
    one.limits.static_memory = {Bytes{1000}};
    problem = in_copies(one);
    program = compile(problem, in_copies(one, testing::order("0F0,1F0,1B0,0B0\n")));
  }

  [[nodiscard]] std::string csv() const {
    const std::string all = to_csv(program);
    return all.substr(0, all.find('\n'));
  }
  [[nodiscard]] Simulation simulated() const {
    return simulate(program, problem.links, ExecutionModel::ideal());
  }
  [[nodiscard]] std::int64_t makespan() const {
    std::int64_t end = 0;
    const Simulation simulation = simulated();
    for (const Interval& i : simulation.timeline.ranks[0].instructions) {
      end = std::max(end, i.end.count());
    }
    return end;
  }
  [[nodiscard]] std::int64_t peak() const {
    std::int64_t most = 0;
    const auto times = simulated().timeline.ranks[0].instructions;
    for (const MemorySample& s : memory_over_time(program, program.ranks[0], times)) {
      most = std::max(most, s.held.value);
    }
    return most;
  }
  [[nodiscard]] std::string faults() const {
    return testing::text(verify(problem, program).diagnostics);
  }
  // The n-th instruction of rank 0 of a kind of op.
  Instruction& find(OpKind kind, InstructionKind what = InstructionKind::run, int n = 0) {
    for (Instruction& i : program.ranks[0].instructions) {
      if (i.op.kind == kind && i.kind == what && n-- == 0) return i;
    }
    throw std::logic_error("no such instruction");
  }

  Problem one, problem;
  Program program;
};

TEST(ShardedParameters, AreCutAsGradientsAreReduced) {
  Problem problem = with_optimizer(
      testing::uniform_problem(PlacementKind::loop, 2, 1, 1, Time{1}, Time{1}, Time{1}),
      {.gradients = Bytes{400},
       .bucket = Bytes{150},
       .tied = Bytes{40},
       .data_parallel = 3,
       .sharding = sharded(Resharding::after_use, 1)});
  problem = in_copies(std::move(problem));
  const GradientSums sums(problem);
  const ShardedParameters parameters(problem, sums);
  // 148, 148, 64 and 40 B of gradients, and half as much of parameters, cut at whole FP32.
  const auto units = parameters.units(0);
  EXPECT_EQ(std::vector(units.begin(), units.end()),
            (std::vector<Bytes>{Bytes{72}, Bytes{76}, Bytes{32}, Bytes{20}}));
  EXPECT_EQ(parameters.holders(1), (std::vector<Rank>{1, 3, 5}));
  EXPECT_EQ(parameters.number(1, 3), 1U);
  // 24, 24, 8 and 4 B, and 24, 24, 12 and 8.
  EXPECT_EQ(parameters.shard(1, 1), Bytes{60});
  EXPECT_EQ(parameters.shard(1, 1) + parameters.shard(1, 3) + parameters.shard(1, 5), Bytes{200});
  EXPECT_TRUE(sums[0].is_scattered);
  EXPECT_FALSE(sums[sums.of(0).back()].is_scattered);  // tied: of other ranks
}

TEST(ShardedParameters, AreNoneWithoutSharding) {
  const Problem problem = with_optimizer(
      testing::uniform_problem(PlacementKind::loop, 2, 1, 1, Time{1}, Time{1}, Time{1}));
  const GradientSums sums(problem);
  EXPECT_TRUE(ShardedParameters(problem, sums).units(0).empty());
  EXPECT_FALSE(sums[0].is_scattered);
}

TEST(InsertSharding, FreesBeforeAnotherStage) {
  EXPECT_EQ(TwoStages(sharded(Resharding::after_use, 0)).csv(),
            "0UNSHARD,0F0,0RESHARD,1UNSHARD,1F0,1B0,1RESHARD,1REDUCE_GRAD,0UNSHARD,0B0,0RESHARD,"
            "0REDUCE_GRAD,1STEP,0STEP");
}

TEST(InsertSharding, GathersAheadSoManyComputes) {
  EXPECT_EQ(TwoStages(sharded(Resharding::after_use, 1)).csv(),
            "0UNSHARD,1UNSHARD,0F0,0RESHARD,1F0,0UNSHARD,1B0,1RESHARD,1REDUCE_GRAD,0B0,0RESHARD,"
            "0REDUCE_GRAD,1STEP,0STEP");
  // The second gather of stage 0 would come before its first use: it stays.
  EXPECT_EQ(TwoStages(sharded(Resharding::after_use, 3)).csv(),
            TwoStages(sharded(Resharding::never, 3)).csv());
}

TEST(InsertSharding, NeverFreesBetweenUses) {
  EXPECT_EQ(TwoStages(sharded(Resharding::never, 0)).csv(),
            "0UNSHARD,0F0,1UNSHARD,1F0,1B0,1RESHARD,1REDUCE_GRAD,0B0,0RESHARD,0REDUCE_GRAD,1STEP,"
            "0STEP");
}

TEST(InsertSharding, OneStageARankIsGatheredOnce) {
  const Problem one = with_optimizer(
      testing::uniform_problem(PlacementKind::loop, 2, 1, 3, Time{1}, Time{1}, Time{1}),
      {.data_parallel = 2, .sharding = sharded(Resharding::after_use, 1)});
  const Schedule order = testing::order("0F0,0F1,0B0,0F2,0B1,0B2\n1F0,1B0,1F1,1B1,1F2,1B2\n");
  const Problem problem = in_copies(one);
  const Program program = compile(problem, in_copies(one, order));
  EXPECT_EQ(testing::text(verify(problem, program).diagnostics), "");
  for (const RankProgram& rank : program.ranks) {
    const auto copies = std::ranges::count_if(rank.instructions, [](const Instruction& i) {
      return i.kind == InstructionKind::run && i.op.kind == OpKind::unshard;
    });
    EXPECT_EQ(copies, 1);
  }
}

// By hand: each gather takes a hop of 7, so does each reduction; F takes 10, B 20, a step half of
// 6.
TEST(InsertSharding, CostsWhatIsNotHidden) {
  // 7 F0 7 F1 B1 7 B0 7 STEP
  EXPECT_EQ(TwoStages(sharded(Resharding::after_use, 0)).makespan(),
            7 + 10 + 7 + 10 + 20 + 7 + 20 + 7 + 3);
  // The other gathers are beside F0 and B1.
  EXPECT_EQ(TwoStages(sharded(Resharding::after_use, 1)).makespan(), 7 + 10 + 10 + 20 + 20 + 7 + 3);
  EXPECT_EQ(TwoStages(sharded(Resharding::never, 0)).makespan(), 7 + 10 + 7 + 10 + 20 + 20 + 7 + 3);
}

// 200 B while a stage is unsharded, 4 B of gradients from the B of a stage on.
TEST(InsertSharding, CountsWhatIsUnsharded) {
  EXPECT_EQ(TwoStages(sharded(Resharding::after_use, 0)).peak(), 1000 + 200 + 8);
  EXPECT_EQ(TwoStages(sharded(Resharding::after_use, 1)).peak(), 1000 + 400 + 4);
  EXPECT_EQ(TwoStages(sharded(Resharding::never, 0)).peak(), 1000 + 400 + 4);
}

TEST(InsertSharding, StagesShareASlotOneAfterTheOther) {
  const auto slots = [](const Sharding& sharding) {
    const TwoStages made(sharding);
    return std::ranges::count_if(made.program.ranks[0].slots, [](const BufferSlot& slot) {
      return slot.pool == BufferPool::parameters && slot.size == Bytes{200};
    });
  };
  EXPECT_EQ(slots(sharded(Resharding::after_use, 0)), 1);
  EXPECT_EQ(slots(sharded(Resharding::after_use, 1)), 2);
  EXPECT_EQ(slots(sharded(Resharding::never, 0)), 2);
}

TEST(InsertSharding, ReductionsLeaveEachRankItsShard) {
  const TwoStages made(sharded(Resharding::after_use, 1));
  for (const RankProgram& rank : made.program.ranks) {
    int gathers = 0;
    int scatters = 0;
    for (const Collective& c : rank.collectives) {
      gathers += c.kind == CollectiveKind::all_gather ? 1 : 0;
      scatters += c.kind == CollectiveKind::reduce_scatter ? 1 : 0;
    }
    EXPECT_EQ(gathers, 3);
    EXPECT_EQ(scatters, 2);
  }
}

// ---- what verify() finds ----------------------------------------------------------------------

TEST(ShardingRule, LetsRightProgramsPass) {
  for (const Resharding reshard : {Resharding::after_use, Resharding::never}) {
    for (const int prefetch : {0, 1, 2, 3}) {
      EXPECT_EQ(TwoStages(sharded(reshard, prefetch)).faults(), "");
    }
  }
}

TEST(ShardingRule, AComputeBeforeItsGather) {
  TwoStages broken(sharded(Resharding::after_use, 0));
  auto& list = broken.program.ranks[0].instructions;
  // 1F0 goes before the gather of stage 1.
  const auto f = std::ranges::find_if(
      list, [](const Instruction& i) { return i.op.kind == OpKind::forward && i.op.stage == 1; });
  const auto gather = f - 1;
  ASSERT_EQ(gather->kind, InstructionKind::collective);
  std::iter_swap(gather, f);
  EXPECT_NE(broken.faults().find("1F0: comes before 1UNSHARD, which it needs"), std::string::npos)
      << broken.faults();
  gather->waits.count = 0;  // 1F0 by now
  EXPECT_NE(broken.faults().find("1F0 needs the parameters of stage 1, slot"), std::string::npos)
      << broken.faults();
  EXPECT_NE(broken.faults().find("of which this rank's shard alone is there"), std::string::npos);
}

TEST(ShardingRule, AComputeAfterItsReshard) {
  TwoStages broken(sharded(Resharding::after_use, 0));
  auto& list = broken.program.ranks[0].instructions;
  const auto reshard =
      std::ranges::find_if(list, [](const Instruction& i) { return i.op.kind == OpKind::reshard; });
  std::iter_swap(reshard, reshard - 1);
  EXPECT_NE(broken.faults().find("0F0 needs the parameters of stage 0, slot"), std::string::npos)
      << broken.faults();
  EXPECT_NE(broken.faults().find("holds the parameters of stage 0, resharded"), std::string::npos);
}

TEST(ShardingRule, AStepBeforeAGather) {
  TwoStages broken(sharded(Resharding::after_use, 0));
  auto& list = broken.program.ranks[0].instructions;
  const auto step = std::ranges::find_if(
      list, [](const Instruction& i) { return i.op.kind == OpKind::optimizer_step; });
  std::rotate(list.begin(), step, step + 1);
  list.front().waits.count = 0;
  EXPECT_NE(broken.faults().find("version rank 0"), std::string::npos);
}

TEST(ShardingRule, ItsWaitsAreNeeded) {
  const TwoStages made(sharded(Resharding::after_use, 1));
  const std::size_t count = made.program.ranks[0].instructions.size();
  int dropped = 0;
  for (std::size_t i = 0; i < count; ++i) {
    TwoStages broken(sharded(Resharding::after_use, 1));
    Instruction& one = broken.program.ranks[0].instructions[i];
    const bool gathers = one.kind == InstructionKind::collective && one.op.kind == OpKind::unshard;
    const bool computes = one.op.kind == OpKind::forward;
    if ((!gathers && !computes) || one.waits.count == 0) continue;
    one.waits.count = 0;
    ++dropped;
    EXPECT_NE(broken.faults().find("race rank 0"), std::string::npos) << i;
  }
  EXPECT_GE(dropped, 5);
}

TEST(ShardingRule, OtherMembersOtherKindsOtherSizesOtherUnits) {
  const auto gathers_of = [](Program& program, auto change) {
    for (RankProgram& rank : program.ranks) {
      for (Collective& c : rank.collectives) {
        if (c.kind == CollectiveKind::all_gather) change(c);
      }
    }
  };
  {
    TwoStages broken(sharded(Resharding::after_use, 1));
    gathers_of(broken.program, [](Collective& c) { c.kind = CollectiveKind::all_reduce; });
    EXPECT_NE(broken.faults().find("calls all_reduce; unit 0 of the parameters of stage 0 needs an "
                                   "all_gather"),
              std::string::npos)
        << broken.faults();
  }
  {
    TwoStages broken(sharded(Resharding::after_use, 1));
    gathers_of(broken.program, [](Collective& c) { c.size = Bytes{8}; });
    EXPECT_NE(broken.faults().find("gathers 8 B of unit 0 of the parameters of stage 0, which has "
                                   "200 B"),
              std::string::npos);
  }
  {
    // Rank 1 gathers the two stages in the other order.
    TwoStages broken(sharded(Resharding::never, 1));
    RankProgram& rank = broken.program.ranks[1];
    std::vector<std::size_t> at;
    for (std::size_t i = 0; i < rank.instructions.size(); ++i) {
      const Instruction& one = rank.instructions[i];
      if (one.kind == InstructionKind::collective && one.op.kind == OpKind::unshard) {
        at.push_back(i);
      }
    }
    ASSERT_EQ(at.size(), 2U);
    // UNSHARD, gather, UNSHARD, gather.
    const auto begin = rank.instructions.begin() + static_cast<std::ptrdiff_t>(at[0]) - 1;
    std::rotate(begin, begin + 2, begin + 4);
    Collective& first = rank.collectives[begin[1].body.first];
    Collective& second = rank.collectives[begin[3].body.first];
    std::swap(first.sequence, second.sequence);
    EXPECT_NE(broken.faults().find("gathers unit 0 of the parameters of stage 1 where rank 0 "
                                   "gathers unit 0 of the parameters of stage 0"),
              std::string::npos)
        << broken.faults();
  }
}

TEST(ShardingRule, WhatIsGatheredCountsAgainstTheLimit) {
  TwoStages made(sharded(Resharding::after_use, 1));
  made.problem.limits.bytes = {Bytes{1404}, Bytes{1404}};
  EXPECT_EQ(made.faults(), "");
  made.problem.limits.bytes = {Bytes{1403}, Bytes{1404}};
  const std::string faults = made.faults();
  EXPECT_NE(faults.find("rank 0 needs 1404 B with what it gathers (1000 B of it static), its limit "
                        "is 1403 B; raise memory.limit, or gather less ahead"),
            std::string::npos)
      << faults;
}

}  // namespace
}  // namespace counterflow
