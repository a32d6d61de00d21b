#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/error.h"
#include "scheduler/graph/gradient_sums.h"
#include "scheduler/graph/op_messages.h"
#include "scheduler/ir/schedule_file.h"
#include "scheduler/passes/compile.h"
#include "scheduler/problem/copies.h"
#include "scheduler/verify/verify.h"
#include "schedules/registry.h"
#include "simulator/simulate.h"
#include "tests/support/optimizers.h"
#include "tests/support/problems.h"

namespace counterflow {
namespace {

using testing::OptimizerShape;
using testing::with_optimizer;

Problem problem_for(const char* family, int p, int m) {
  const Family& found = *find_family(family);
  return testing::family_problem(found, p, found.default_chunks, m);
}

Program compiled(const char* family, const Problem& problem) {
  return compile(problem, generate(*find_family(family), problem));
}

std::string text(const Diagnostics& faults) {
  std::string all;
  for (const Diagnostic& fault : faults) {
    all += fault.rule + " rank " + std::to_string(fault.rank.value_or(-1)) + ": " + fault.message +
           "\n";
  }
  return all;
}

TEST(GradientSums, WithoutAnOptimizerAStageHasOneOfNoSize) {
  const GradientSums sums(problem_for("1f1b", 3, 3));
  ASSERT_EQ(sums.size(), 3U);
  EXPECT_EQ(sums[1].stages, std::vector<Stage>{1});
  EXPECT_EQ(sums[1].size, Bytes{0});
  EXPECT_FALSE(sums[1].is_shared());
}

TEST(GradientSums, AreCutIntoBucketsAndTied) {
  const Problem problem = with_optimizer(problem_for("1f1b", 3, 3), {.bucket = Bytes{150}});
  const GradientSums sums(problem);
  // 360 B of their own in the first and last stage, cut at whole numbers of FP32; 400 in the other.
  std::vector<std::int64_t> sizes;
  for (GradientSums::Id id = 0; id < sums.size(); ++id) sizes.push_back(sums[id].size.value);
  EXPECT_EQ(sizes, (std::vector<std::int64_t>{148, 148, 64, 148, 148, 104, 148, 148, 64, 40}));
  const auto last = static_cast<GradientSums::Id>(sums.size() - 1);
  EXPECT_EQ(sums[last].stages, (std::vector<Stage>{0, 2}));
  EXPECT_EQ(sums[last].holders, (std::vector<Rank>{0, 2}));
  EXPECT_TRUE(sums[last].is_shared());
  EXPECT_EQ(sums.of(2).back(), last);
  EXPECT_EQ(sums.on(problem, 0), (std::vector<GradientSums::Id>{0, 1, 2, last}));
}

TEST(GradientSums, OfCopiesAreSharedByTheirRanks) {
  const GradientSums sums(with_optimizer(problem_for("dualpipe", 4, 8), {.bucket = Bytes{0}}));
  EXPECT_EQ(sums[0].holders, (std::vector<Rank>{0, 3}));
  EXPECT_EQ(sums[1].holders, (std::vector<Rank>{1, 2}));
}

TEST(GradientSums, OfFrozenStagesAreNone) {
  Problem problem = with_optimizer(problem_for("1f1b", 3, 3), {.bucket = Bytes{0}});
  problem.frozen[0] = 1;
  const GradientSums sums(problem);
  EXPECT_TRUE(sums.of(0).empty());
  // The tied parameters are trained by the last stage alone.
  EXPECT_EQ(sums[sums.of(2).back()].stages, std::vector<Stage>{2});
}

// Ops of a rank from the first reduction on, as schedules write them; reductions of a kind once.
std::vector<std::string> tail(const Program& program, std::size_t rank) {
  std::vector<std::string> all;
  for (const Instruction& i : program.ranks[rank].instructions) {
    const bool whole = i.op.kind == OpKind::none || !has_microbatch(i.op.kind);
    if (whole) all.push_back(i.op.kind == OpKind::none ? "all_reduce" : to_string(i.op));
  }
  return all;
}

TEST(InsertOptimizer, ReducesThenTakesTheNormThenSteps) {
  const Problem problem =
      with_optimizer(problem_for("dualpipe", 2, 4), {.bucket = Bytes{0}, .tied = Bytes{40}});
  const Program program = compiled("dualpipe", problem);
  // Each rank holds both stages: their own gradients, and one sum of what is tied.
  const std::vector<std::vector<std::string>> reduced = {
      {"0REDUCE_GRAD", "0REDUCE_GRAD", "~1REDUCE_GRAD"},
      {"1REDUCE_GRAD", "~0REDUCE_GRAD", "~0REDUCE_GRAD"}};
  for (std::size_t rank = 0; rank < 2; ++rank) {
    auto ops = tail(program, rank);
    std::sort(ops.begin(), ops.begin() + 3);
    EXPECT_EQ(ops.size(), 7U);
    EXPECT_EQ(std::vector<std::string>(ops.begin(), ops.begin() + 3), reduced[rank]);
    EXPECT_TRUE(ops[3].ends_with("NORM")) << ops[3];
    EXPECT_EQ(ops[4], "all_reduce");
  }
  EXPECT_EQ(text(verify(problem, program).diagnostics), "");
}

// NORM and its reduction first, then what need not wait for it, then what must.
TEST(InsertOptimizer, StepsBesideTheNormAndValidatesThem) {
  const Problem problem =
      with_optimizer(problem_for("dualpipe", 2, 4),
                     {.bucket = Bytes{0}, .tied = Bytes{40}, .validation = Validation::after});
  const Program program = compiled("dualpipe", problem);
  EXPECT_EQ(text(verify(problem, program).diagnostics), "");
  for (std::size_t r = 0; r < 2; ++r) {
    const RankProgram& rank = program.ranks[r];
    const auto ops = tail(program, r);
    ASSERT_EQ(ops.size(), 9U);
    EXPECT_EQ(ops[4], "all_reduce");
    for (const std::size_t k : {5U, 6U}) {
      EXPECT_TRUE(ops[k].ends_with("STEP")) << ops[k];
      std::string validation = ops[k];
      validation.replace(validation.size() - 4, 4, "VALIDATE");
      EXPECT_EQ(ops[k + 2], validation);
    }
    Bytes kept;
    for (const Instruction& i : rank.instructions) {
      if (i.kind != InstructionKind::run || uses_buffers(i.op)) continue;
      const Kernel& kernel = program.kernels[i.kernel];
      kept += kernel.allocates - kernel.frees;
      if (i.op.kind != OpKind::optimizer_step) continue;
      EXPECT_EQ(kernel.allocates, Bytes{400});
      // The sums of the stage and what is kept, but not the norm.
      EXPECT_EQ(rank.accesses_of(i).size(), 3U);
      EXPECT_EQ(rank.slots[rank.accesses_of(i).back().slot].size, Bytes{400});
    }
    EXPECT_EQ(kept, Bytes{0});
  }
}

// A hop of 7 each way round for the norm, 14; a step of 50 or of 5 beside it, then VALIDATE of 3.
TEST(InsertOptimizer, ValidationCostsWhatTheNormIsLongerThanTheStep) {
  const auto end = [](Time step) {
    Problem problem = with_optimizer(
        testing::uniform_problem(PlacementKind::loop, 2, 1, 1, Time{10}, Time{10}, Time{10},
                                 Time{7}),
        {.bucket = Bytes{0}, .tied = Bytes{0}, .step = step, .validation = Validation::after});
    problem.optimizer->validate.assign(2, Time{3});
    const Program program = compiled("1f1b", problem);
    const Simulation simulation = simulate(program, problem.links, ExecutionModel::ideal());
    return simulation.timeline.ranks[0].instructions.back().end;
  };
  const Time last_gradient{20 + 40 + 14};
  EXPECT_EQ(end(Time{50}), last_gradient + Time{50 + 3});
  EXPECT_EQ(end(Time{5}), last_gradient + Time{14 + 3});
}

TEST(InsertOptimizer, TiesNothingAcrossRanksWhereOneRankHoldsBothEnds) {
  const OptimizerShape shape{.bucket = Bytes{0}, .global_norm = false};
  const auto reductions = [&](const char* family) {
    const Program program = compiled(family, with_optimizer(problem_for(family, 2, 4), shape));
    std::size_t count = 0;
    for (const RankProgram& rank : program.ranks) count += rank.collectives.size();
    return count;
  };
  EXPECT_EQ(reductions("1f1b"), 2U);  // one on each rank
  EXPECT_EQ(reductions("zbv"), 0U);   // rank 0 holds the first and the last stage
}

// Data parallelism: whatever the order of the backward, exactly one reduction for each stage on
// each rank that holds it, and none before the stage's last gradient there.
TEST(InsertOptimizer, ReducesOnceAfterTheLastGradientOfEveryPipeline) {
  for (const char* family : {"1f1b", "zb-h1", "interleaved-1f1b", "zbv", "dualpipe"}) {
    const Problem one = with_optimizer(
        problem_for(family, 4, 8),
        {.bucket = Bytes{0}, .tied = Bytes{0}, .global_norm = false, .data_parallel = 2});
    const Problem whole = in_copies(one);
    const Schedule schedule = generate(*find_family(family), one);
    const Program program = compile(whole, in_copies(one, schedule));
    ASSERT_EQ(program.ranks.size(), 8U);
    EXPECT_EQ(text(verify(whole, program).diagnostics), "") << family;
    for (std::size_t r = 0; r < 8; ++r) {
      std::map<Stage, int> reduced;
      for (const Instruction& i : program.ranks[r].instructions) {
        if (i.kind == InstructionKind::collective) {
          ++reduced[i.op.stage];
          const auto& members = program.communicators[i.communicator].members;
          EXPECT_EQ(members.size(), whole.placement.directions() == 2 ? 4U : 2U) << family;
        }
        for (const Op& op : {i.op, i.paired}) {
          if (op.kind != OpKind::backward && op.kind != OpKind::backward_weight) continue;
          EXPECT_FALSE(reduced.contains(op.stage)) << family << " rank " << r;
        }
      }
      EXPECT_EQ(reduced.size(), whole.placement.chunks_of(static_cast<Rank>(r)).size());
      for (const auto& [stage, times] : reduced) EXPECT_EQ(times, 1) << family << stage;
    }
  }
}

TEST(InsertOptimizer, IsOffByDefault) {
  const Problem problem = problem_for("dualpipe", 4, 8);
  const Program program = compiled("dualpipe", problem);
  EXPECT_TRUE(tail(program, 0).empty());
  EXPECT_EQ(program.communicators.size(), 2U);
  Problem forward = with_optimizer(problem_for("1f1b", 2, 2));
  forward.forward_only = true;
  EXPECT_TRUE(tail(compiled("forward-only", forward), 0).empty());
}

TEST(InsertOptimizer, RefusesACopyWithoutGradients) {
  const Problem problem = with_optimizer(problem_for("chimera", 2, 1));
  EXPECT_THROW((void)compiled("chimera", problem), InfeasibleError);
}

TEST(InsertOptimizer, ReducesBesideWhatStillRuns) {
  // Interleaved: the chunks that come last in the model have their gradients first.
  Problem problem = with_optimizer(problem_for("dualpipe", 4, 8),
                                   {.bucket = Bytes{0}, .tied = Bytes{0}, .global_norm = false});
  const Program program = compiled("dualpipe", problem);
  const Simulation simulation = simulate(program, problem.links, ExecutionModel::ideal());
  ASSERT_TRUE(simulation.diagnostics.empty());
  Time last_compute{0};
  Time first_reduction = Time::max();
  for (std::size_t r = 0; r < program.ranks.size(); ++r) {
    const auto& rank = program.ranks[r];
    for (std::size_t i = 0; i < rank.instructions.size(); ++i) {
      const Interval when = simulation.timeline.ranks[r].instructions[i];
      if (is_backward(rank.instructions[i].op.kind)) {
        last_compute = std::max(last_compute, when.end);
      } else if (rank.instructions[i].kind == InstructionKind::collective) {
        first_reduction = std::min(first_reduction, when.begin);
      }
    }
  }
  EXPECT_LT(first_reduction, last_compute);
}

TEST(InsertOptimizer, CostsWhatRingAndStepsCost) {
  // Two ranks, one stage each: B ends, 100 B tied between them, each a step of 50.
  Problem problem = with_optimizer(
      testing::uniform_problem(PlacementKind::loop, 2, 1, 1, Time{10}, Time{10}, Time{10}, Time{7}),
      {.gradients = Bytes{100},
       .bucket = Bytes{0},
       .tied = Bytes{100},
       .step = Time{50},
       .global_norm = false});
  const Program program = compiled("1f1b", problem);
  const Simulation simulation = simulate(program, problem.links, ExecutionModel::ideal());
  // F F B B with two hops, 2 (n - 1) hops of the ring, the step.
  EXPECT_EQ(simulation.timeline.ranks[0].instructions.back().end, Time{20 + 40 + 14 + 14 + 50});
}

// ---- what verify() finds
// -------------------------------------------------------------------------

struct Broken {
  Problem problem = with_optimizer(problem_for("dualpipe", 2, 4), {.bucket = Bytes{0}});
  Program program = compiled("dualpipe", problem);

  RankProgram& rank(std::size_t r) { return program.ranks[r]; }
  // The n-th instruction of a kind of op, or of collectives.
  Instruction& find(std::size_t r, auto wanted, int n = 0) {
    for (Instruction& i : rank(r).instructions) {
      if (wanted(i) && n-- == 0) return i;
    }
    throw std::logic_error("no such instruction");
  }
  Instruction& collective(std::size_t r, int n) {
    return find(r, [](const auto& i) { return i.kind == InstructionKind::collective; }, n);
  }
  void erase(std::size_t r, const Instruction& which) {
    auto& list = rank(r).instructions;
    list.erase(list.begin() + (&which - list.data()));
  }
  [[nodiscard]] std::string faults() { return text(verify(problem, program).diagnostics); }
};

TEST(ReductionRule, EveryStageSteps) {
  Broken broken;
  broken.erase(0, broken.rank(0).instructions.back());
  EXPECT_EQ(broken.faults(), "reduction rank 0: is missing\n");
}

TEST(ReductionRule, NoStageStepsTwice) {
  Broken broken;
  auto& list = broken.rank(0).instructions;
  Instruction copy = list.back();
  copy.records = kNone;
  list.push_back(copy);
  EXPECT_EQ(broken.faults(), "reduction rank 0: stands in the program more than once\n");
}

TEST(ReductionRule, AllMembersAddUpTheSame) {
  // Both ranks reduce two sums of the same size on one communicator: one of them the second first.
  Broken broken;
  auto& list = broken.rank(1).instructions;
  auto& collectives = broken.rank(1).collectives;
  const auto first = list.begin() + (&broken.collective(1, 0) - list.data());
  const auto second = list.begin() + (&broken.collective(1, 1) - list.data());
  ASSERT_EQ(first->communicator, second->communicator);
  std::swap(collectives[first->body.first].sequence, collectives[second->body.first].sequence);
  std::rotate(first, first + 1, second + 1);
  const std::string faults = broken.faults();
  EXPECT_NE(faults.find("adds up"), std::string::npos) << faults;
}

TEST(ReductionRule, OnlyWhatIsCompleteIsAddedUp) {
  // A reduction before the last gradient it adds up.
  Broken broken;
  auto& list = broken.rank(0).instructions;
  const auto first = std::find_if(list.begin(), list.end(), [](const auto& i) {
    return i.kind == InstructionKind::collective;
  });
  Instruction moved = *first;
  list.erase(first);
  moved.waits.count = 0;
  list.insert(list.begin() + 2, moved);
  EXPECT_NE(broken.faults().find("version rank 0"), std::string::npos);
}

TEST(ReductionRule, ItsWaitsAreNeeded) {
  for (std::size_t r = 0; r < 2; ++r) {
    for (int n = 0; n < 4; ++n) {
      Broken broken;
      broken.collective(r, n).waits.count = 0;
      EXPECT_NE(broken.faults().find("race rank"), std::string::npos) << n;
    }
  }
}

TEST(ReductionRule, OtherMembersOtherKindsOtherSizes) {
  {
    Broken broken;
    for (std::size_t r = 0; r < 2; ++r) {
      broken.rank(r).collectives[0].kind = CollectiveKind::reduce_scatter;
    }
    EXPECT_NE(broken.faults().find("is a reduce_scatter; bucket 0 of the gradients of stage"),
              std::string::npos);
  }
  {
    Broken broken;
    for (std::size_t r = 0; r < 2; ++r) broken.rank(r).collectives[0].size = Bytes{8};
    EXPECT_NE(broken.faults().find("adds up 8 B of"), std::string::npos);
  }
  {
    // Each rank reduces its first sum alone.
    Broken broken;
    for (std::size_t r = 0; r < 2; ++r) {
      Instruction& alone = broken.collective(r, 0);
      const CommunicatorId shared = alone.communicator;
      alone.communicator = static_cast<CommunicatorId>(broken.program.communicators.size());
      broken.program.communicators.push_back(
          {.kind = CommunicatorKind::data_parallel, .members = {static_cast<Rank>(r)}});
      for (const Instruction& i : broken.rank(r).instructions) {
        if (i.kind != InstructionKind::collective || i.communicator != shared) continue;
        --broken.rank(r).collectives[i.body.first].sequence;
      }
    }
    EXPECT_NE(broken.faults().find("whose members are not the ranks that share it"),
              std::string::npos);
  }
}

TEST(ReductionRule, ASumThatIsNeverAddedUp) {
  Broken broken;
  for (std::size_t r = 0; r < 2; ++r) {
    // The norm's: who waits for it waits for the norm of the rank instead.
    const Instruction& last = broken.collective(r, 3);
    const Instruction& norm =
        broken.find(r, [](const auto& i) { return i.op.kind == OpKind::gradient_norm; });
    for (EventWait& wait : broken.rank(r).waits) {
      if (wait.event == last.records) wait = {norm.records, norm.generation};
    }
    const Access made = broken.rank(r).accesses_of(norm).back();
    for (Access& access : broken.rank(r).accesses) {
      if (access.slot == made.slot) access.version = std::uint32_t{made.version} & 0x7fffffffU;
    }
    broken.rank(r).collectives.pop_back();
    broken.erase(r, last);
  }
  EXPECT_NE(broken.faults().find("needs the norm of the gradients, summed over ranks"),
            std::string::npos)
      << broken.faults();
}

}  // namespace
}  // namespace counterflow
