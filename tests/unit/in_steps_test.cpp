#include "scheduler/passes/in_steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/error.h"
#include "scheduler/passes/compile.h"
#include "scheduler/problem/steps.h"
#include "scheduler/verify/verify.h"
#include "schedules/registry.h"
#include "tests/support/optimizers.h"
#include "tests/support/phases.h"
#include "tests/support/problems.h"

namespace counterflow {
namespace {

Problem validated_problem(const char* family, int p, int m) {
  const Family& found = *find_family(family);
  return testing::with_optimizer(
      testing::family_problem(found, p, found.default_chunks, m),
      {.bucket = Bytes{0}, .tied = Bytes{0}, .validation = Validation::after});
}

struct Steps {
  Steps(const char* family, int p, int m, int count)
      : one(validated_problem(family, p, m)),
        problem(in_steps(one, count)),
        program(in_steps(one, compile(one, generate(*find_family(family), one)), count)) {}

  std::vector<Instruction>& list(std::size_t rank) { return program.ranks[rank].instructions; }
  // The first instruction of a rank that is so.
  std::vector<Instruction>::iterator find(std::size_t rank, auto wanted) {
    const auto found = std::find_if(list(rank).begin(), list(rank).end(), wanted);
    if (found == list(rank).end()) throw std::logic_error("no such instruction");
    return found;
  }
  [[nodiscard]] std::set<std::string> rules_broken() const {
    std::set<std::string> rules;
    for (const Diagnostic& fault : verify(problem, program).diagnostics) rules.insert(fault.rule);
    return rules;
  }

  Problem one;
  Problem problem;
  Program program;
};

auto is_op(OpKind kind, Microbatch microbatch = 0) {
  return [=](const Instruction& i) {
    return i.kind == InstructionKind::run && i.op.kind == kind && i.op.microbatch == microbatch;
  };
}

TEST(InSteps, OneStepIsAsItWas) {
  const Problem one = validated_problem("zbv", 2, 4);
  const Program program = compile(one, generate(*find_family("zbv"), one));
  EXPECT_EQ(in_steps(one, program, 1), program);
  EXPECT_EQ(in_steps(one, 1).microbatches, 4);
}

TEST(InSteps, PhasesAndCostsOfMicrobatchesAreRepeated) {
  Problem one = validated_problem("1f1b", 2, 5);
  testing::set_phases(one, {{PhaseKind::eval, 2}, {PhaseKind::train, 3}});
  MicrobatchFactors factors;
  factors.forward = {1, 2, 3, 4, 5};
  one.costs = Costs(one.costs.stages(), factors, one.costs.pairs());
  const Problem three = in_steps(one, 3);
  EXPECT_EQ(three.microbatches, 15);
  ASSERT_EQ(three.phases.size(), 6U);
  EXPECT_EQ(three.phases[4], (Phase{PhaseKind::eval, 10, 2}));
  EXPECT_EQ(three.phases[5], (Phase{PhaseKind::train, 12, 3}));
  EXPECT_EQ(three.costs.factors().forward.size(), 15U);
  EXPECT_EQ(three.costs.factors().forward[11], 2);
  EXPECT_EQ(three.step_of(9), 1);
  EXPECT_EQ(three.step_of(10), 2);
  EXPECT_FALSE(three.trains(11));
  EXPECT_TRUE(three.trains(12));
}

TEST(InSteps, CopiesOfAStageTakeEqualPartsOfEveryStep) {
  const Problem three = in_steps(validated_problem("dualpipe", 2, 4), 3);
  for (Microbatch mb = 0; mb < 12; ++mb) EXPECT_EQ(three.replica_of(mb), mb % 4 < 2 ? 0 : 1) << mb;
}

TEST(InSteps, TooManyMicrobatches) {
  const Problem one = validated_problem("1f1b", 2, 1001);
  EXPECT_THROW((void)in_steps(one, 1000), InfeasibleError);
}

// Events and slots are those of one step, used again.
TEST(InSteps, NumbersRunOn) {
  const Steps two("1f1b", 3, 4, 2);
  const Steps four("1f1b", 3, 4, 4);
  EXPECT_EQ(four.program.microbatches, 16);
  for (std::size_t r = 0; r < 3; ++r) {
    const RankProgram& rank = four.program.ranks[r];
    EXPECT_EQ(rank.instructions.size(), 2 * two.program.ranks[r].instructions.size());
    EXPECT_EQ(rank.events, two.program.ranks[r].events);
    EXPECT_EQ(rank.slots, two.program.ranks[r].slots);
    EXPECT_EQ(rank.static_memory, two.program.ranks[r].static_memory);
    std::map<std::pair<CommunicatorId, std::pair<int, bool>>, std::uint32_t> next;
    for (const Instruction& i : rank.instructions) {
      for (const Transfer& t : rank.transfers_of(i)) {
        EXPECT_EQ(t.sequence, (next[{i.communicator, {t.peer, t.is_send}}]++));
      }
    }
  }
  EXPECT_TRUE(four.rules_broken().empty());
}

// Before the first op of the stage that finds the parameters: of two chunks on a rank, each its
// own.
TEST(InSteps, ValidateBeforeTheNextStepsFirstForward) {
  const Steps two("interleaved-1f1b", 2, 4, 2);
  for (std::size_t r = 0; r < 2; ++r) {
    const auto& list = two.program.ranks[r].instructions;
    std::map<int, std::size_t> validated, forward, stepped;
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (list[i].op.kind == OpKind::validate_step) validated.try_emplace(list[i].op.stage, i);
      if (list[i].op.kind == OpKind::optimizer_step) stepped.try_emplace(list[i].op.stage, i);
      if (list[i].op.kind == OpKind::forward && list[i].op.microbatch >= 4) {
        forward.try_emplace(list[i].op.stage, i);
      }
    }
    ASSERT_EQ(validated.size(), 2U);
    for (const auto& [stage, at] : validated) {
      EXPECT_LT(stepped.at(stage), at);
      EXPECT_EQ(at + 1, forward.at(stage)) << "rank " << r << " stage " << stage;
    }
    EXPECT_NE(validated.begin()->second + 1, validated.rbegin()->second);
  }
}

// ---- What verify() says of steps that do not follow each other
// -----------------------------------

TEST(StepRule, AValidationIsMissing) {
  Steps last("1f1b", 2, 3, 3);
  ASSERT_EQ(last.list(1).back().op.kind, OpKind::validate_step);
  last.list(1).pop_back();
  EXPECT_EQ(last.rules_broken(), std::set<std::string>{"reduction"});
  // The next one comes in its place, with what is not there yet.
  Steps first("1f1b", 2, 3, 3);
  first.list(1).erase(first.find(1, is_op(OpKind::validate_step)));
  EXPECT_TRUE(first.rules_broken().contains("version"));
}

TEST(StepRule, AForwardDoesNotWaitForTheValidation) {
  Steps steps("1f1b", 2, 3, 3);
  const auto validation = steps.find(0, is_op(OpKind::validate_step));
  ASSERT_TRUE(is_op(OpKind::forward, 3)(*(validation + 1)));
  std::iter_swap(validation, validation + 1);
  const Diagnostics faults = verify(steps.problem, steps.program).diagnostics;
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_EQ(faults[0].rule, "step");
  EXPECT_EQ(faults[0].message, "comes before the VALIDATE that ends step 0 of its stage");
}

TEST(StepRule, AForwardStandsBeforeTheStep) {
  Steps steps("1f1b", 1, 3, 2);
  const auto step = steps.find(0, is_op(OpKind::optimizer_step));
  const auto forward = steps.find(0, is_op(OpKind::forward, 3));
  std::rotate(step, forward, forward + 1);
  EXPECT_TRUE(steps.rules_broken().contains("step"));
}

TEST(StepRule, AWeightGradientComesAfterTheStep) {
  // Of one step: what a step misses is seen without a second one.
  Problem problem = validated_problem("1f1b", 1, 3);
  Program program = compile(problem, generate(*find_family("1f1b"), problem));
  auto& list = program.ranks[0].instructions;
  const auto backward = std::find_if(list.begin(), list.end(), is_op(OpKind::backward, 2));
  const auto step = std::find_if(list.begin(), list.end(), is_op(OpKind::optimizer_step));
  ASSERT_LT(backward, step);
  std::rotate(backward, backward + 1, step + 1);
  bool said = false;
  for (const Diagnostic& fault : verify(problem, program).diagnostics) {
    said |= fault.rule == "step" || fault.rule == "version";
  }
  EXPECT_TRUE(said);
}

// A receive of the next step may come while this one's last reader is still at work.
TEST(StepRule, ASlotOfTheStepBeforeIsStillRead) {
  int races = 0;
  for (const char* family : {"1f1b", "zb-h2", "zbv"}) {
    Steps steps(family, 4, 8, 3);
    for (std::size_t r = 0; r < 4; ++r) {
      for (Instruction& i : steps.list(r)) {
        const auto transfers = steps.program.ranks[r].transfers_of(i);
        if (transfers.empty() || transfers[0].is_send || i.waits.count == 0) continue;
        if (transfers[0].payload.microbatch < 8) continue;
        const Range kept = std::exchange(i.waits, {});
        const auto rules = steps.rules_broken();
        EXPECT_EQ(rules, std::set<std::string>{"race"}) << family;
        races += static_cast<int>(rules.size());
        i.waits = kept;
        break;
      }
    }
  }
  EXPECT_GT(races, 3);
}

TEST(StepRule, TheNormOfAnotherStep) {
  Steps steps("1f1b", 2, 3, 3);
  RankProgram& rank = steps.program.ranks[1];
  const Instruction& second = *std::find_if(
      rank.instructions.begin(), rank.instructions.end(),
      [n = 0](const auto& i) mutable { return i.op.kind == OpKind::validate_step && n++ == 1; });
  // Its second access from behind is the norm.
  Access& norm = rank.accesses[second.body.first + second.body.count - 2];
  norm.version = (norm.version - 2U) & 0x7fffffffU;
  EXPECT_EQ(steps.rules_broken(), std::set<std::string>{"version"});
}

TEST(StepRule, WhatStepsKeepMustFit) {
  Problem problem = validated_problem("1f1b", 2, 3);
  for (StageMemory& memory : problem.memory) memory = {Bytes{100}, Bytes{100}};
  problem.limits.static_memory = {Bytes{1000}, Bytes{1000}};
  problem.limits.bytes = {Bytes{1400}, Bytes{1399}};
  const Program program = compile(problem, generate(*find_family("1f1b"), problem));
  const Diagnostics faults = verify(problem, program).diagnostics;
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_EQ(faults[0].rule, "memory");
  EXPECT_EQ(faults[0].rank, 1);
  EXPECT_EQ(faults[0].message,
            "rank 1 needs 1400 B here, 400 B of it parameters as they were before a step that is "
            "not validated yet, its limit is 1399 B; raise memory.limit or set "
            "optimizer.validation: before");
}

}  // namespace
}  // namespace counterflow
