#include "scheduler/verify/repair.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <utility>

#include "scheduler/error.h"
#include "scheduler/passes/compile.h"
#include "scheduler/verify/verify.h"
#include "tests/support/cases.h"
#include "tests/support/problems.h"
#include "tests/support/random_problems.h"

namespace counterflow {
namespace {

using testing::draw;
using testing::uniform_problem;

ScheduleFile public_file(const std::string& name) {
  std::ifstream input(std::string(TEST_DATA) + "/public/" + name);
  std::stringstream text;
  text << input.rdbuf();
  return parse_schedule(text.str(), name);
}

// What of a file must not change: its computes and stage actions, in order.
std::vector<std::vector<std::string>> without_transfers(const ScheduleFile& file) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& row : file.rows) {
    rows.emplace_back();
    for (const Action& action : row) {
      if (action.form == Action::Form::group || is_transfer(action.op.kind)) continue;
      rows.back().push_back(to_string(Slot{action.op, action.paired}));
    }
  }
  return rows;
}

void expect_clean(const Problem& problem, const ScheduleFile& file) {
  const ProgramVerdict verdict = verify(problem, import(problem, file));
  EXPECT_TRUE(verdict.diagnostics.empty()) << verdict.diagnostics.front().message;
  for (const auto& [semantics, completes] : verdict.semantics) {
    EXPECT_TRUE(completes) << name(semantics);
  }
}

Problem loop_problem(int p, int v, int m) {
  return uniform_problem(PlacementKind::loop, p, v, m, Time{10}, Time{10}, Time{10});
}

TEST(Repair, MendsTheOrderThatHungAcrossNodes) {
  const ScheduleFile file = public_file("interleaved_2rank_4mb_comms.csv");
  const Problem problem = loop_problem(2, 2, 4);
  EXPECT_FALSE(verify(problem, import(problem, file)).diagnostics.empty());
  const ScheduleFile repaired = repair(problem, file);
  expect_clean(problem, repaired);
  EXPECT_EQ(without_transfers(repaired), without_transfers(file));
}

// Both ranks send first.
TEST(Repair, MendsHeadToHeadSends) {
  const Problem problem = loop_problem(2, 1, 2);
  const ScheduleFile file = parse_schedule(
      "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
      "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n",
      "order.csv");
  expect_clean(problem, repair(problem, file));
}

TEST(Repair, MendsReceivesAfterTheirUseAndEndsThatMeetCrosswise) {
  const Problem problem = loop_problem(2, 1, 2);
  const ScheduleFile file = parse_schedule(
      "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B1,0RECV_B0,0B0,0B1\n"
      "1F0,1RECV_F1,1RECV_F0,1B0,1SEND_B0,1F1,1B1,1SEND_B1\n",
      "order.csv");
  const ScheduleFile repaired = repair(problem, file);
  expect_clean(problem, repaired);
  EXPECT_EQ(without_transfers(repaired), without_transfers(file));
}

TEST(Repair, TakesGroupsApartThatAreTooLarge) {
  const Problem problem = loop_problem(2, 1, 2);
  const ScheduleFile file = parse_schedule(
      "0F0,0F1,[0SEND_F0;0SEND_F1],0RECV_B0,0B0,0RECV_B1,0B1\n"
      "[1RECV_F0;1RECV_F1],1F0,1B0,1SEND_B0,1F1,1B1,1SEND_B1\n",
      "order.csv");
  ASSERT_EQ(verify(problem, import(problem, file)).diagnostics.front().rule, "group");
  const ScheduleFile repaired = repair(problem, file);
  expect_clean(problem, repaired);
  EXPECT_EQ(without_transfers(repaired), without_transfers(file));
}

TEST(Repair, LeavesWhatIsWellAsItIs) {
  const Problem problem = loop_problem(2, 1, 2);
  const std::string rows =
      "0F0,0SEND_F0,0F1,[0SEND_F1;0RECV_B0],0B0,0RECV_B1,0B1\n"
      "1RECV_F0,1F0,1B0,[1SEND_B0;1RECV_F1],1F1,1B1,1SEND_B1\n";
  EXPECT_EQ(to_csv(repair(problem, parse_schedule(rows, "order.csv"))), rows);
}

std::string refusal(const Problem& problem, const std::string& text) {
  try {
    (void)repair(problem, parse_schedule(text, "order.csv"));
  } catch (const InfeasibleError& error) {
    return error.what();
  }
  return "";
}

TEST(Repair, SaysWhyItCannot) {
  const Problem problem = loop_problem(2, 1, 1);
  EXPECT_EQ(refusal(problem, "0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0\n"),
            "cannot be repaired by moving transfers: rank 1, 1SEND_B0: [matching] is missing: rank "
            "0 0RECV_B0 has no sender");
  EXPECT_EQ(refusal(problem, "0B0,0F0,0SEND_F0,0RECV_B0\n1RECV_F0,1F0,1B0,1SEND_B0\n"),
            "cannot be repaired by moving transfers: rank 0, position 0, 0B0: [order] comes before "
            "0F0, which it needs");
  EXPECT_EQ(refusal(problem, "0F0,0SEND_F0,0REDUCE_GRAD,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n"),
            "cannot be repaired by moving transfers: rank 0, position 2, 0REDUCE_GRAD: [reduction] "
            "stands before 0B0, whose gradients it misses");
}

// Whatever places the transfers of a valid program are moved to, they can be put right again.
TEST(Repair, MendsAnyPlacesOfTransfers) {
  testing::RandomProblems problems(99);
  std::mt19937_64 random(7);
  int broken = 0;
  for (int index = 0; index < testing::cases(400); ++index) {
    const auto sample = problems.next();
    const Problem& problem = sample.problem;
    const Program program = compile(problem, generate(*sample.family, problem));
    ScheduleFile file = parse_schedule(to_csv(program), "program.csv");
    if (!file.has_communication) continue;
    for (auto& row : file.rows) {
      for (std::size_t k = 0; k + 1 < row.size(); ++k) {
        const bool either = is_transfer(row[k].op.kind) || is_transfer(row[k + 1].op.kind);
        if (either && draw(random, 0, 2) == 0) std::swap(row[k], row[k + 1]);
      }
    }
    const ProgramVerdict before = verify(problem, import(problem, file));
    broken += before.diagnostics.empty() ? 0 : 1;
    const ScheduleFile repaired = repair(problem, file);
    SCOPED_TRACE(sample.family->name);
    expect_clean(problem, repaired);
    ASSERT_EQ(without_transfers(repaired), without_transfers(file));
  }
  EXPECT_GT(broken, testing::cases(100));
}

}  // namespace
}  // namespace counterflow
