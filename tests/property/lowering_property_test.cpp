#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/graph/channels.h"
#include "scheduler/passes/compile.h"
#include "scheduler/verify/verify.h"
#include "tests/support/orders.h"
#include "tests/support/problems.h"

// What must hold for the program of every family.
namespace counterflow {
namespace {

using testing::describe;
using testing::family_problem;
using testing::set_pair_cost;
using testing::text;

class EveryFamilyLowered : public ::testing::TestWithParam<std::string> {
 protected:
  // Shapes the family takes, with costs under which it fuses where it can.
  [[nodiscard]] static std::vector<std::pair<std::string, Problem>> problems() {
    const Family& family = *find_family(GetParam());
    std::vector<std::pair<std::string, Problem>> result;
    for (const int p : {1, 2, 3, 4, 6}) {
      for (const int m : {1, 2, 3, 4, 8, 12}) {
        for (const int v : {1, 2, 4}) {
          const Shape shape{p, m, v, 0};
          if (refusal(family, shape)) continue;
          Problem problem = family_problem(family, p, v, m, {3, 4, 2, 0.5});
          problem.forward_only = family.forward_only;
          if (family.fuses_pairs) set_pair_cost(problem, testing::units(7.0 / v));
          result.emplace_back(describe(family, shape), std::move(problem));
        }
      }
    }
    return result;
  }
};

void expect_faultless(const Problem& problem, const Program& program) {
  const ProgramVerdict verdict = verify(problem, program);
  ASSERT_EQ(text(verdict.diagnostics), "");
  ASSERT_EQ(verdict.semantics.size(), 3U);
  for (const auto& [semantics, completes] : verdict.semantics) {
    ASSERT_TRUE(completes) << name(semantics);
  }
}

TEST_P(EveryFamilyLowered, CompilesToAFaultlessProgram) {
  for (const auto& [shape, problem] : problems()) {
    SCOPED_TRACE(shape);
    const Schedule schedule = generate(*find_family(GetParam()), problem);
    EXPECT_EQ(text(verify(problem, schedule)), "");
    expect_faultless(problem, compile(problem, schedule));
  }
}

TEST_P(EveryFamilyLowered, CompletesEvenWhereABlockedTransferStallsItsRank) {
  for (const auto& [shape, problem] : problems()) {
    SCOPED_TRACE(shape);
    Program program = compile(problem, generate(*find_family(GetParam()), problem));
    for (RankProgram& rank : program.ranks) {
      for (Instruction& instruction : rank.instructions) instruction.stream = 0;
    }
    expect_faultless(problem, program);
  }
}

TEST_P(EveryFamilyLowered, ReadsBackFromItsTextFaultless) {
  for (const auto& [shape, problem] : problems()) {
    SCOPED_TRACE(shape);
    const Schedule schedule = generate(*find_family(GetParam()), problem);
    const Program program = compile(problem, schedule);
    const ScheduleFile file = parse_schedule(to_csv(program), "program.csv");
    EXPECT_EQ(text(verify(problem, file)), "");
    EXPECT_EQ(file.compute().ranks, schedule.ranks);
    const Program back = import(problem, file);
    expect_faultless(problem, back);
    EXPECT_EQ(to_csv(back), to_csv(program));
  }
}

TEST_P(EveryFamilyLowered, KeepsTheOrderOfComputeAndSendsEachMessageOnce) {
  for (const auto& [shape, problem] : problems()) {
    SCOPED_TRACE(shape);
    const Schedule schedule = generate(*find_family(GetParam()), problem);
    const Program program = compile(problem, schedule);
    std::map<Payload, int> sent;
    std::map<Payload, int> received;
    for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) {
      std::vector<Slot> computes;
      for (const Instruction& instruction : program.ranks[rank].instructions) {
        if (instruction.kind == InstructionKind::run) {
          computes.push_back({instruction.op, instruction.paired});
        }
        for (const Transfer& transfer : program.ranks[rank].transfers_of(instruction)) {
          ++(transfer.is_send ? sent : received)[transfer.payload];
          EXPECT_NE(transfer.peer, rank);
        }
      }
      EXPECT_EQ(computes, schedule.ranks[rank]);
    }
    // A chain of S stages: each microbatch crosses S-1 edges there, and back unless forward-only.
    std::map<Payload, int> expected;
    const Channels channels(problem);
    for (Microbatch mb = 0; mb < problem.microbatches; ++mb) {
      for (Channels::Id id = 0; id < channels.size(); ++id) {
        const auto& channel = channels[id];
        if (channel.crosses_ranks() && channel.replica == problem.replica_of(mb)) {
          expected[channel.payload(mb)] = 1;
        }
      }
    }
    EXPECT_EQ(sent, expected);
    EXPECT_EQ(received, expected);
  }
}

std::vector<std::string> family_names() {
  std::vector<std::string> names;
  for (const Family& family : families()) names.emplace_back(family.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Lowering, EveryFamilyLowered, ::testing::ValuesIn(family_names()),
                         [](const auto& test) { return testing::test_name(test.param); });

}  // namespace
}  // namespace counterflow
