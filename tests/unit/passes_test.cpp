#include "scheduler/passes/passes.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "scheduler/error.h"
#include "scheduler/passes/compile.h"
#include "scheduler/verify/verify.h"
#include "tests/support/orders.h"
#include "tests/support/problems.h"

namespace counterflow {
namespace {

using testing::order;
using testing::set_pair_cost;
using testing::text;
using testing::uniform_problem;

Problem chain(int p, int m, Time latency = Time{0}) {
  return uniform_problem(PlacementKind::loop, p, 1, m, Time{10}, Time{8}, Time{5}, latency);
}

constexpr const char* kTwoByTwo = "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n";

// ---- Pass by pass -------------------------------------------------------------------------------

TEST(LowerCompute, MakesEachSlotARunOnTheComputeStream) {
  Problem problem = chain(2, 2);
  problem.limits.static_memory = {Bytes{7}, Bytes{9}};
  const Schedule schedule = order("0F0,0F1,0B0,0B1\n1F0,(1F1;1B0)OVERLAP_F_B,1B1\n");
  const Program program = lower_compute(problem, schedule);
  EXPECT_EQ(program.schedule, "order.csv");
  EXPECT_EQ(program.stages, 2);
  EXPECT_EQ(program.microbatches, 2);
  EXPECT_TRUE(program.communicators.empty());
  ASSERT_EQ(program.ranks.size(), 2U);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    ASSERT_EQ(program.ranks[rank].streams.size(), 1U);
    EXPECT_EQ(program.ranks[rank].streams[0].role, StreamRole::compute);
    ASSERT_EQ(program.ranks[rank].instructions.size(), schedule.ranks[rank].size());
    for (std::size_t i = 0; i < schedule.ranks[rank].size(); ++i) {
      const Instruction& run = program.ranks[rank].instructions[i];
      EXPECT_EQ(run.kind, InstructionKind::run);
      EXPECT_EQ(run.stream, 0);
      EXPECT_EQ((Slot{run.op, run.paired}), schedule.ranks[rank][i]);
      EXPECT_EQ(program.kernels[run.kernel].duration, problem.duration(schedule.ranks[rank][i]));
    }
  }
  EXPECT_EQ(program.ranks[1].static_memory, Bytes{9});
}

TEST(InsertTransfers, PutsSendsAfterTheirOpAndReceivesBeforeTheirs) {
  const Program program = compile(chain(2, 2), order(kTwoByTwo));
  EXPECT_EQ(to_csv(program),
            "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
            "1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1\n");
}

TEST(InsertTransfers, SizesBothDirectionsByTheLowerStagesOutput) {
  Problem problem = chain(2, 1);
  problem.message = {Bytes{64}, Bytes{7}};
  const Program program = compile(problem, order("0F0,0B0\n1F0,1B0\n"));
  for (const RankProgram& rank : program.ranks) {
    for (const Transfer& transfer : rank.transfers) EXPECT_EQ(transfer.size, Bytes{64});
  }
}

TEST(InsertTransfers, ThrowsWhereTheOrderItselfDeadlocks) {
  try {
    static_cast<void>(compile(chain(2, 2), order("0F0,0B0,0F1,0B1\n1F1,1F0,1B0,1B1\n")));
    FAIL() << "compiled";
  } catch (const InfeasibleError& error) {
    EXPECT_STREQ(error.what(),
                 "schedule order.csv deadlocks: some op waits for one that never runs; `verify` "
                 "shows where");
  }
}

TEST(InsertTransfers, WorksWhereEverythingTakesNoTime) {
  const Problem problem = uniform_problem(PlacementKind::loop, 3, 1, 4, Time{0}, Time{0}, Time{0});
  const Program program = compile(problem, generate(*find_family("1f1b"), problem));
  EXPECT_EQ(text(verify(problem, program).diagnostics), "");
}

TEST(AssignCommunicators, SeparatesDirectionsAndNumbersEachChannel) {
  const Program program = compile(chain(3, 2), generate(*find_family("1f1b"), chain(3, 2)));
  ASSERT_EQ(program.communicators.size(), 2U);
  EXPECT_EQ(program.communicators[0].kind, CommunicatorKind::activations);
  EXPECT_EQ(program.communicators[1].kind, CommunicatorKind::gradients);
  EXPECT_EQ(program.communicators[0].members, (std::vector<Rank>{0, 1, 2}));
  for (const RankProgram& rank : program.ranks) {
    std::map<std::tuple<CommunicatorId, bool, int>, std::uint32_t> next;
    for (const Instruction& instruction : rank.instructions) {
      for (const Transfer& transfer : rank.transfers_of(instruction)) {
        const bool gradient = transfer.payload.kind == PayloadKind::gradient;
        EXPECT_EQ(instruction.communicator, gradient ? 1 : 0);
        EXPECT_EQ(transfer.sequence,
                  (next[{instruction.communicator, transfer.is_send, transfer.peer}]++));
      }
    }
  }
}

TEST(AssignCommunicators, ForwardOnlyHasNoneForGradients) {
  Problem problem = chain(2, 2);
  problem.forward_only = true;
  const Program program = compile(problem, generate(*find_family("forward-only"), problem));
  ASSERT_EQ(program.communicators.size(), 1U);
  EXPECT_EQ(program.communicators[0].kind, CommunicatorKind::activations);
}

TEST(AssignCommunicators, OneRankHasNone) {
  const Problem problem = chain(1, 2);
  const Program program = compile(problem, generate(*find_family("1f1b"), problem));
  EXPECT_TRUE(program.communicators.empty());
  EXPECT_EQ(program.ranks[0].streams.size(), 1U);
  EXPECT_EQ(program.ranks[0].events, 0U);
}

TEST(AssignStreams, GivesEachPeerAndDirectionItsOwn) {
  const Problem problem = chain(3, 2);
  const Program program = compile(problem, generate(*find_family("1f1b"), problem));
  const RankProgram& middle = program.ranks[1];
  std::set<std::string> labels;
  for (const Stream& stream : middle.streams) labels.insert(stream.label);
  EXPECT_EQ(labels, (std::set<std::string>{"compute", "receive from 0", "receive from 2",
                                           "send to 0", "send to 2"}));
  for (const Instruction& instruction : middle.instructions) {
    const Stream& stream = middle.streams[instruction.stream];
    if (instruction.kind == InstructionKind::run) {
      EXPECT_EQ(stream.role, StreamRole::compute);
      continue;
    }
    EXPECT_EQ(stream.role, StreamRole::p2p);
    const Transfer& transfer = middle.transfers_of(instruction).front();
    EXPECT_EQ(stream.label,
              (transfer.is_send ? "send to " : "receive from ") + std::to_string(transfer.peer));
  }
}

TEST(AssignStreams, RefusesMorePeersThanThereAreStreams) {
  // Stage 0 feeds 254 others, there and back.
  Problem problem = chain(255, 1);
  std::vector<StageGraph::Edge> edges;
  for (Stage to = 1; to < 255; ++to) edges.emplace_back(0, to);
  problem.graph = StageGraph(255, edges);
  Schedule schedule{"star", {}};
  schedule.ranks.resize(255);
  for (std::uint16_t stage = 0; stage < 255; ++stage) {
    schedule.ranks[stage] = {{{OpKind::forward, 0, stage, 0}, {}},
                             {{OpKind::backward, 0, stage, 0}, {}}};
  }
  try {
    static_cast<void>(compile(problem, schedule));
    FAIL() << "compiled";
  } catch (const InfeasibleError& error) {
    EXPECT_STREQ(error.what(),
                 "rank 0 exchanges data with more than 127 ranks; place stages that feed each "
                 "other closer together");
  }
}

// What an instruction waits for, as text.
std::vector<std::string> sources(const RankProgram& rank, const Instruction& instruction) {
  std::vector<std::string> result;
  for (const EventWait& wait : rank.waits_of(instruction)) {
    for (const Instruction& other : rank.instructions) {
      if (other.records == wait.event) result.push_back(to_string(other.op));
    }
  }
  return result;
}

TEST(InsertEvents, AComputeWaitsForItsReceiveAndASendForItsCompute) {
  const Program program = compile(chain(2, 1), order("0F0,0B0\n1F0,1B0\n"));
  using Waits = std::map<std::string, std::vector<std::string>>;
  const auto waits = [&](std::size_t rank) {
    Waits all;
    for (const Instruction& instruction : program.ranks[rank].instructions) {
      all[to_string(instruction.op)] = sources(program.ranks[rank], instruction);
    }
    return all;
  };
  EXPECT_EQ(waits(0),
            (Waits{{"0F0", {}}, {"0SEND_F0", {"0F0"}}, {"0RECV_B0", {}}, {"0B0", {"0RECV_B0"}}}));
  EXPECT_EQ(waits(1),
            (Waits{{"1RECV_F0", {}}, {"1F0", {"1RECV_F0"}}, {"1B0", {}}, {"1SEND_B0", {"1B0"}}}));
}

TEST(InsertEvents, AStageWithTwoInputsWaitsForBothInTheirOrder) {
  Problem problem = chain(3, 1);
  problem.graph = StageGraph(3, {{0, 2}, {0, 1}, {1, 2}});
  const Program program = compile(problem, order("0F0,0B0\n1F0,1B0\n2F0,2B0\n"));
  const RankProgram& last = program.ranks[2];
  for (const Instruction& instruction : last.instructions) {
    if (instruction.op.kind != OpKind::forward) continue;
    std::vector<int> peers;
    for (const EventWait& wait : last.waits_of(instruction)) {
      for (const Instruction& other : last.instructions) {
        if (other.records == wait.event) peers.push_back(last.transfers_of(other).front().peer);
      }
    }
    EXPECT_EQ(peers, (std::vector<int>{0, 1}));
  }
}

TEST(InsertEvents, APairIsWaitedForByBothItsSends) {
  Problem problem = chain(3, 2);
  set_pair_cost(problem, Time{15});
  const Program program =
      compile(problem, order("0F0,0F1,0B0,0B1\n1F0,(1F1;1B0)OVERLAP_F_B,1B1\n2F0,2B0,2F1,2B1\n"));
  const RankProgram& middle = program.ranks[1];
  int sends = 0;
  for (const Instruction& instruction : middle.instructions) {
    if (instruction.op == testing::op("1SEND_F1") || instruction.op == testing::op("1SEND_B0")) {
      EXPECT_EQ(sources(middle, instruction), (std::vector<std::string>{"1F1"}));
      ++sends;
    }
  }
  EXPECT_EQ(sends, 2);
}

TEST(Compile, ShowsEveryPassToTheObserver) {
  std::vector<std::string> seen;
  const Problem problem = chain(2, 2);
  const Program program = compile(problem, order(kTwoByTwo),
                                  [&](std::string_view pass, const Program& after, Time took) {
                                    seen.emplace_back(pass);
                                    EXPECT_EQ(after.ranks.size(), 2U);
                                    EXPECT_GE(took, Time{0});
                                  });
  std::vector<std::string> expected = {"lower_compute"};
  for (const Pass& pass : passes()) expected.emplace_back(pass.name);
  EXPECT_EQ(seen, expected);
  EXPECT_EQ(program, compile(problem, order(kTwoByTwo)));
}

TEST(Import, KeepsTransfersAndGroupsWhereTheyStand) {
  const std::string rows =
      "0F0,0SEND_F0,0F1,[0SEND_F1;0RECV_B0],0B0,0RECV_B1,0B1\n"
      "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n";
  const Problem problem = chain(2, 2);
  const Program program = import(problem, parse_schedule(rows, "file.csv"));
  EXPECT_EQ(to_csv(program), rows);
  EXPECT_EQ(program.ranks[0].streams.size(), 1U);
  EXPECT_EQ(program.ranks[0].instructions[3].body, (Range{1, 2}));
  EXPECT_EQ(text(verify(problem, program).diagnostics), "");
}

TEST(Import, TheKthEqualTransferIsOfTheKthNeighbour) {
  Problem problem = chain(3, 1);
  problem.graph = StageGraph(3, {{0, 1}, {0, 2}, {1, 2}});
  const ScheduleFile file = parse_schedule(
      "0F0,0SEND_F0,0SEND_F0,0RECV_B0,0RECV_B0,0B0\n"
      "1RECV_F0,1F0,1SEND_F0,1RECV_B0,1B0,1SEND_B0\n"
      "2RECV_F0,2RECV_F0,2F0,2B0,2SEND_B0,2SEND_B0\n",
      "skip.csv");
  const Program program = import(problem, file);
  EXPECT_EQ(program.ranks[0].transfers[0].peer, 1);
  EXPECT_EQ(program.ranks[0].transfers[1].peer, 2);
  EXPECT_EQ(program.ranks[2].transfers[0].peer, 0);
  EXPECT_EQ(program.ranks[2].transfers[1].peer, 1);
}

// A gradient that flows back on one of two edges only: the other feeder is frozen.
TEST(Import, PassesOverNeighboursThatNothingIsSentTo) {
  Problem problem = chain(3, 1);
  problem.graph = StageGraph(3, {{0, 2}, {1, 2}});
  problem.frozen = {1, 0, 0};
  const Program compiled = compile(problem, order("0F0\n1F0,1B0\n2F0,2B0\n"));
  EXPECT_EQ(text(verify(problem, compiled).diagnostics), "");
  const Program back = import(problem, parse_schedule(to_csv(compiled), "back.csv"));
  EXPECT_EQ(text(verify(problem, back).diagnostics), "");
}

// A group may hold both directions; each of its messages still meets its other end.
TEST(Import, AGroupOfAnActivationAndAGradientMeetsSingleTransfers) {
  const Problem problem = chain(2, 2);
  const Program program =
      import(problem, parse_schedule("0F0,0SEND_F0,0F1,[0SEND_F1;0RECV_B0],0B0,0RECV_B1,0B1\n"
                                     "1RECV_F0,1F0,1B0,[1SEND_B0;1RECV_F1],1F1,1B1,1SEND_B1\n",
                                     "groups.csv"));
  const ProgramVerdict verdict = verify(problem, program);
  EXPECT_EQ(text(verdict.diagnostics), "");
  for (const auto& [semantics, completes] : verdict.semantics) {
    EXPECT_TRUE(completes) << name(semantics);
  }
}

}  // namespace
}  // namespace counterflow
