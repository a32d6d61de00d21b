#include "simulator/simulate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "report/report.h"
#include "scheduler/graph/evaluate.h"
#include "scheduler/passes/compile.h"
#include "scheduler/verify/verify.h"
#include "tests/support/cases.h"
#include "tests/support/orders.h"
#include "tests/support/problems.h"
#include "tests/support/random_problems.h"

namespace counterflow {
namespace {

using testing::describe;
using testing::draw;
using testing::family_problem;
using testing::order;
using testing::text;
using testing::uniform_problem;
using Spans = std::vector<std::pair<std::int64_t, std::int64_t>>;

Spans spans(const Simulation& simulation, std::size_t rank) {
  Spans result;
  for (const Interval& interval : simulation.timeline.ranks[rank].instructions) {
    result.emplace_back(interval.begin.count(), interval.end.count());
  }
  return result;
}

ExecutionModel strict(Semantics semantics) {
  return {.name = "strict", .semantics = semantics, .independent_transfers = false};
}

// ---- One stream a rank, by hand -----------------------------------------------------------------

// Two ranks, two forwards: 10 on rank 0, 20 on rank 1; a hop takes 3.
class TwoForwards {
 public:
  explicit TwoForwards(std::int64_t message = 0) {
    problem_ = uniform_problem(PlacementKind::loop, 2, 1, 2, Time{0}, Time{0}, Time{0});
    problem_.costs = Costs({{Time{10}, Time{0}, Time{0}}, {Time{20}, Time{0}, Time{0}}});
    problem_.forward_only = true;
    problem_.message.assign(2, Bytes{message});
    // A byte a nanosecond.
    problem_.links = Links(Time{3}, message > 0 ? 1e9 : 0);
  }
  [[nodiscard]] Simulation run(const std::string& second_row, Semantics semantics) const {
    const std::string rows = "0F0,0SEND_F0,0F1,0SEND_F1\n" + second_row + "\n";
    const Program program = import(problem_, parse_schedule(rows, "file.csv"));
    return simulate(program, problem_.links, strict(semantics));
  }

 private:
  Problem problem_;
};

constexpr const char* kReceiveLate = "1RECV_F0,1F0,1RECV_F1,1F1";
constexpr const char* kReceiveFirst = "1RECV_F0,1RECV_F1,1F0,1F1";

TEST(Buffered, ASendNeverBlocks) {
  const Simulation run = TwoForwards().run(kReceiveLate, Semantics::buffered);
  EXPECT_EQ(text(run.diagnostics), "");
  EXPECT_EQ(spans(run, 0), (Spans{{0, 10}, {10, 10}, {10, 20}, {20, 20}}));
  EXPECT_EQ(spans(run, 1), (Spans{{0, 13}, {13, 33}, {33, 33}, {33, 53}}));
}

TEST(Posted, ASendWaitsForItsReceive) {
  const Simulation run = TwoForwards().run(kReceiveLate, Semantics::posted);
  EXPECT_EQ(text(run.diagnostics), "");
  EXPECT_EQ(spans(run, 0), (Spans{{0, 10}, {10, 10}, {10, 20}, {20, 33}}));
  EXPECT_EQ(spans(run, 1), (Spans{{0, 13}, {13, 33}, {33, 36}, {36, 56}}));
}

TEST(Posted, AReceiveDoesNotBlock) {
  const Simulation run = TwoForwards().run(kReceiveFirst, Semantics::posted);
  EXPECT_EQ(spans(run, 0), (Spans{{0, 10}, {10, 10}, {10, 20}, {20, 20}}));
  EXPECT_EQ(spans(run, 1), (Spans{{0, 13}, {0, 23}, {13, 33}, {33, 53}}));
}

TEST(Rendezvous, BothEndsBlock) {
  const Simulation late = TwoForwards().run(kReceiveLate, Semantics::rendezvous);
  EXPECT_EQ(spans(late, 0), (Spans{{0, 10}, {10, 10}, {10, 20}, {20, 33}}));
  EXPECT_EQ(spans(late, 1), (Spans{{0, 13}, {13, 33}, {33, 36}, {36, 56}}));
  // The second receive holds up the first forward.
  const Simulation first = TwoForwards().run(kReceiveFirst, Semantics::rendezvous);
  EXPECT_EQ(spans(first, 1), (Spans{{0, 13}, {13, 23}, {23, 43}, {43, 63}}));
}

TEST(Bandwidth, OccupiesTheLinkBeforeTheLatency) {
  // 5 ns on the link, then 3 on its way.
  const Simulation run = TwoForwards(5).run(kReceiveLate, Semantics::rendezvous);
  EXPECT_EQ(spans(run, 0), (Spans{{0, 10}, {10, 15}, {15, 25}, {25, 43}}));
  EXPECT_EQ(spans(run, 1), (Spans{{0, 18}, {18, 38}, {38, 46}, {46, 66}}));
}

TEST(Bandwidth, MessagesOfALinkFollowEachOther) {
  // 15 ns each: on the link 10..25 and 25..40, though the second is ready at 20.
  const Simulation run = TwoForwards(15).run(kReceiveFirst, Semantics::buffered);
  EXPECT_EQ(spans(run, 0), (Spans{{0, 10}, {10, 25}, {10, 20}, {20, 40}}));
  EXPECT_EQ(spans(run, 1), (Spans{{0, 28}, {28, 43}, {43, 63}, {63, 83}}));
}

TEST(Groups, EndWhenAllTheirTransfersEnd) {
  const Problem problem = [] {
    Problem p = uniform_problem(PlacementKind::loop, 2, 1, 2, Time{10}, Time{0}, Time{0}, Time{3});
    p.forward_only = true;
    return p;
  }();
  const Program program = import(
      problem,
      parse_schedule("0F0,0SEND_F0,0F1,0SEND_F1\n[1RECV_F0;1RECV_F1],1F0,1F1\n", "file.csv"));
  const Simulation run = simulate(program, problem.links, strict(Semantics::rendezvous));
  EXPECT_EQ(spans(run, 1), (Spans{{0, 23}, {23, 33}, {33, 43}}));
}

// ---- Streams, communicators, launch order, queues -----------------------------------------------

// Rank 1 of three issues its receive of the second microbatch (which comes at 60) before its send
// of the first (which could go at 40), on streams of their own.
class ReceiveBeforeSend {
 public:
  ReceiveBeforeSend() {
    problem_ = uniform_problem(PlacementKind::loop, 3, 1, 2, Time{0}, Time{0}, Time{0});
    problem_.costs =
        Costs({{Time{30}, Time{0}, Time{0}}, {Time{10}, Time{0}, Time{0}}, {Time{10}, {}, {}}});
    problem_.forward_only = true;
    program_ = compile(problem_, order("0F0,0F1\n1F0,1F1\n2F0,2F1\n"));
    std::swap(middle()[at("1RECV_F1")], middle()[at("1SEND_F0")]);
    // As if it had a buffer of its own: else it waits for the reader of the one before it.
    middle()[at("1RECV_F1")].waits.count = 0;
    EXPECT_LT(at("1RECV_F1"), at("1SEND_F0"));
  }
  // When an instruction of rank 1 begins.
  [[nodiscard]] std::int64_t begin(const char* op, const ExecutionModel& execution) {
    const Simulation run = simulate(program_, problem_.links, execution);
    EXPECT_EQ(text(run.diagnostics), "");
    return run.timeline.ranks[1].instructions[at(op)].begin.count();
  }

 private:
  [[nodiscard]] std::vector<Instruction>& middle() { return program_.ranks[1].instructions; }
  [[nodiscard]] std::size_t at(const char* op) {
    const auto found = std::ranges::find(middle(), testing::op(op), &Instruction::op);
    return static_cast<std::size_t>(found - middle().begin());
  }

  Problem problem_;
  Program program_;
};

TEST(ExecutionRules, StreamsOfTheirOwnLetTheSendGo) {
  EXPECT_EQ(ReceiveBeforeSend().begin("1SEND_F0", strict(Semantics::rendezvous)), 40);
}

TEST(ExecutionRules, ASerialCommunicatorHoldsTheSendBehindTheReceive) {
  ExecutionModel model = strict(Semantics::rendezvous);
  model.serial_communicators = true;
  EXPECT_EQ(ReceiveBeforeSend().begin("1SEND_F0", model), 60);
}

TEST(ExecutionRules, ChainedLaunchesWaitForTheStartSerialOnesForTheEnd) {
  ExecutionModel model = strict(Semantics::rendezvous);
  model.launch_order = LaunchOrder::chained;
  EXPECT_EQ(ReceiveBeforeSend().begin("1SEND_F0", model), 40);
  model.launch_order = LaunchOrder::serial;
  EXPECT_EQ(ReceiveBeforeSend().begin("1SEND_F0", model), 60);
}

TEST(ExecutionRules, OneHardwareQueueStartsInIssueOrder) {
  ExecutionModel model = strict(Semantics::rendezvous);
  // Behind the first forward, which starts at 30, when the receive's own stream is free.
  EXPECT_EQ(ReceiveBeforeSend().begin("1RECV_F1", model), 30);
  model.hardware_queues = 1;
  EXPECT_EQ(ReceiveBeforeSend().begin("1RECV_F1", model), 30);
  EXPECT_EQ(ReceiveBeforeSend().begin("1SEND_F0", model), 40);
  EXPECT_EQ(ReceiveBeforeSend().begin("1F1", model), 60);
}

TEST(ExecutionRules, UnderIdealAReceiveIsShownFromWhenItsMessageSetsOut) {
  EXPECT_EQ(ReceiveBeforeSend().begin("1RECV_F1", ExecutionModel::ideal()), 60);
}

// ---- Every family -------------------------------------------------------------------------------

class EveryFamilySimulated : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryFamilySimulated, IdealIsTheEvaluatorAndNoPresetGetsStuck) {
  const Family& family = *find_family(GetParam());
  for (const auto& [p, m] : std::vector<std::pair<int, int>>{{2, 4}, {4, 8}, {4, 3}, {8, 16}}) {
    const Shape shape{p, m, family.default_chunks, 0};
    if (refusal(family, shape)) continue;
    SCOPED_TRACE(describe(family, shape));
    Problem problem = family_problem(family, p, shape.chunks, m, {3, 4, 2, 0.5});
    problem.forward_only = family.forward_only;
    problem.links = Links(testing::units(0.5), 1e9);
    problem.message.assign(problem.message.size(), Bytes{testing::kUnit / 4});
    const Schedule schedule = generate(family, problem);
    const Program program = compile(problem, schedule);
    const Time ideal = Evaluator(problem).makespan(schedule);
    const auto makespan = [&](const ExecutionModel& model) {
      const Simulation run = simulate(program, problem.links, model);
      EXPECT_EQ(text(run.diagnostics), "") << model.name;
      return measure(program, run.timeline).makespan;
    };
    EXPECT_EQ(makespan(ExecutionModel::ideal()), ideal);
    EXPECT_GE(makespan(ExecutionModel::nccl()), ideal);
    EXPECT_GE(makespan(ExecutionModel::gloo()), ideal);
    ExecutionModel narrow = ExecutionModel::nccl();
    narrow.launch_order = LaunchOrder::serial;
    narrow.hardware_queues = 1;
    EXPECT_GE(makespan(narrow), ideal);
  }
}

std::vector<std::string> family_names() {
  std::vector<std::string> names;
  for (const Family& family : families()) names.emplace_back(family.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Simulator, EveryFamilySimulated, ::testing::ValuesIn(family_names()),
                         [](const auto& test) { return testing::test_name(test.param); });

// ---- Programs that get stuck --------------------------------------------------------------------

Problem two_by_two() {
  return uniform_problem(PlacementKind::loop, 2, 1, 2, Time{10}, Time{8}, Time{5});
}

Simulation run_file(const Problem& problem, const std::string& rows, Semantics semantics) {
  const Program program = import(problem, parse_schedule(rows, "file.csv"));
  return simulate(program, problem.links, strict(semantics));
}

constexpr const char* kCrossingSends =
    "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
    "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n";

TEST(Stuck, CrossingSendsNameTheFirstInstructionOfEachRank) {
  for (const Semantics semantics : {Semantics::posted, Semantics::rendezvous}) {
    const Simulation run = run_file(two_by_two(), kCrossingSends, semantics);
    EXPECT_EQ(text(run.diagnostics),
              "deadlock rank 0 [3] 0SEND_F1: began and never ends\n"
              "deadlock rank 1 [3] 1SEND_B0: began and never ends\n");
    EXPECT_EQ(
        spans(run, 0),
        (Spans{{0, 10}, {10, 10}, {10, 20}, {20, -1}, {-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}}));
  }
  EXPECT_EQ(text(run_file(two_by_two(), kCrossingSends, Semantics::buffered).diagnostics), "");
}

TEST(Stuck, AReceiveWithoutASender) {
  Problem problem = two_by_two();
  problem.microbatches = 1;
  problem.forward_only = true;
  EXPECT_EQ(text(run_file(problem, "0F0\n1RECV_F0,1F0\n", Semantics::buffered).diagnostics),
            "deadlock rank 1 [0] 1RECV_F0: began and never ends\n");
}

TEST(Simulate, IsDeterministic) {
  const Problem problem = two_by_two();
  const Program program = compile(problem, generate(*find_family("1f1b"), problem));
  EXPECT_EQ(simulate(program, problem.links, ExecutionModel::nccl()).timeline,
            simulate(program, problem.links, ExecutionModel::nccl()).timeline);
}

TEST(Simulate, AStepEndTakesNoTime) {
  const Problem problem = two_by_two();
  Program program = compile(problem, generate(*find_family("1f1b"), problem));
  program.ranks[0].instructions.push_back({.kind = InstructionKind::step_end});
  const Simulation run = simulate(program, problem.links, ExecutionModel::ideal());
  EXPECT_EQ(text(run.diagnostics), "");
  EXPECT_EQ(run.timeline.ranks[0].instructions.back(), (Interval{Time{69}, Time{69}}));
}

// ---- The simulator and the proof know the same rules --------------------------------------------

void expect_agreement(const Problem& problem, const std::string& rows) {
  const Program program = import(problem, parse_schedule(rows, "file.csv"));
  const ProgramVerdict verdict = verify(problem, program);
  for (const auto& [semantics, completes] : verdict.semantics) {
    const Simulation run = simulate(program, problem.links, strict(semantics));
    EXPECT_EQ(completes, run.diagnostics.empty()) << name(semantics) << "\n" << rows;
    // Whoever says no says why.
    EXPECT_TRUE(completes || !verdict.diagnostics.empty()) << name(semantics) << "\n" << rows;
  }
}

TEST(SimulatorAndVerify, AgreeOnAGroupOfReceives) {
  // The second gradient of the group is made from an activation sent after the group.
  expect_agreement(two_by_two(),
                   "0F0,0F1,0SEND_F0,[0RECV_B0;0RECV_B1],0SEND_F1,0B0,0B1\n"
                   "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n");
}

TEST(SimulatorAndVerify, AgreeOnAGroupOfBothKinds) {
  Problem problem = two_by_two();
  problem.microbatches = 1;
  expect_agreement(problem, "0F0,[0SEND_F0;0RECV_B0],0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n");
}

TEST(SimulatorAndVerify, AgreeOnASendNobodyReceives) {
  Problem problem = two_by_two();
  problem.microbatches = 1;
  problem.forward_only = true;
  expect_agreement(problem, "0F0,0SEND_F0\n1F0\n");
}

// The rows of a program with some neighbouring cells swapped where compute keeps its order.
std::string shuffled(const Program& program, std::mt19937_64& random) {
  std::string rows;
  for (const RankProgram& rank : program.ranks) {
    std::vector<Op> ops;
    for (const Instruction& instruction : rank.instructions) ops.push_back(instruction.op);
    for (auto swaps = draw(random, 0, 6); swaps > 0; --swaps) {
      const auto k = static_cast<std::size_t>(draw(random, 0, std::ssize(ops) - 2));
      if (is_compute(ops[k].kind) && is_compute(ops[k + 1].kind)) continue;
      std::swap(ops[k], ops[k + 1]);
    }
    for (std::size_t k = 0; k < ops.size(); ++k) {
      rows += (k > 0 ? "," : "") + to_string(ops[k]);
    }
    rows += "\n";
  }
  return rows;
}

TEST(SimulatorAndVerify, AgreeOnShuffledPrograms) {
  std::mt19937_64 random(9);
  for (const char* family : {"1f1b", "zb-h1", "zbv", "interleaved-1f1b"}) {
    const int v = find_family(family)->default_chunks;
    const Problem problem = family_problem(*find_family(family), 3, v, 4, {3, 4, 2, 0.5});
    const Program program = compile(problem, generate(*find_family(family), problem));
    for (int round = 0; round < testing::cases(300); ++round)
      expect_agreement(problem, shuffled(program, random));
  }
}

}  // namespace
}  // namespace counterflow
