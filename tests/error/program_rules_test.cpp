#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "scheduler/passes/compile.h"
#include "scheduler/verify/verify.h"
#include "schedules/registry.h"
#include "tests/support/orders.h"
#include "tests/support/problems.h"

// One minimal rejection for each rule of whole programs, with its exact diagnostic.
namespace counterflow {
namespace {

using testing::order;
using testing::text;
using testing::uniform_problem;

Problem chain(int p, int m, int v = 1) {
  return uniform_problem(PlacementKind::loop, p, v, m, Time{10}, Time{8}, Time{5});
}
Problem forwards(int p, int m) {
  Problem problem = chain(p, m);
  problem.forward_only = true;
  return problem;
}

std::string faults_of_file(const Problem& problem, const std::string& rows,
                           std::span<const Semantics> asked = kAllSemantics) {
  const ScheduleFile file = parse_schedule(rows, "file.csv");
  Diagnostics found = verify(problem, file);
  const Diagnostics more = verify_communication(problem, import(problem, file), asked).diagnostics;
  found.insert(found.end(), more.begin(), more.end());
  return text(found);
}

// ---- crossing
// ------------------------------------------------------------------------------------

// Two ranks of two stages: rank 1 is both the next and the previous rank of rank 0. Activations of
// 0 -> 1 and 2 -> 3 and gradients of 2 -> 1 all go from rank 0 to rank 1.
Program on_one_communicator(const Problem& problem, const Schedule& schedule) {
  Program program = compile(problem, schedule);
  program.communicators = {{.kind = CommunicatorKind::pipeline, .members = {0, 1}}};
  for (RankProgram& rank : program.ranks) {
    std::uint32_t next[2] = {0, 0};
    for (Instruction& i : rank.instructions) {
      if (i.kind != InstructionKind::transfer) continue;
      i.communicator = 0;
      Transfer& transfer = rank.transfers[i.body.first];
      transfer.sequence = next[transfer.is_send ? 1 : 0]++;
    }
  }
  return program;
}

TEST(CrossingRule, ActivationsAndGradientsOfOneChannelInDifferentOrders) {
  const Problem problem = chain(2, 2, 2);
  const Schedule schedule = generate(*find_family("interleaved-1f1b"), problem);
  Program program = on_one_communicator(problem, schedule);
  EXPECT_EQ(text(verify(problem, program).diagnostics), "");
  // Rank 1 receives a gradient and the activation after it the other way round.
  RankProgram& rank = program.ranks[1];
  std::uint32_t gradient = kNone;
  std::uint32_t activation = kNone;
  for (std::uint32_t t = 0; t < rank.transfers.size(); ++t) {
    const Transfer& transfer = rank.transfers[t];
    if (transfer.is_send) continue;
    if (transfer.payload.kind == PayloadKind::activation) activation = t;
    if (transfer.payload.kind != PayloadKind::gradient || activation == kNone) continue;
    gradient = t;
    break;
  }
  ASSERT_NE(gradient, kNone);
  std::swap(rank.transfers[gradient].payload, rank.transfers[activation].payload);
  std::string found;
  for (const Diagnostic& d : verify(problem, program).diagnostics) {
    if (d.rule == "crossing") found += text({d});
  }
  const std::string why =
      "): activations and gradients share this channel, in different orders at its two ends; give "
      "each direction a communicator of its own\n";
  EXPECT_EQ(
      found,
      "crossing rank 0 [9] 2SEND_F1: is message 3 from rank 0 (position 9, 2SEND_F1) to rank "
      "1, which takes it for a gradient (position 8, 1RECV_B0" +
          why +
          "crossing rank 0 [12] 2SEND_B0: is message 4 from rank 0 (position 12, 2SEND_B0) to "
          "rank 1, which takes it for an activation (position 13, 3RECV_F1" +
          why);
}

TEST(CrossingRule, OneCommunicatorADirectionKeepsThemApart) {
  const Problem problem = chain(2, 2, 2);
  const Program program = compile(problem, generate(*find_family("interleaved-1f1b"), problem));
  EXPECT_EQ(program.communicators.size(), 2U);
  EXPECT_EQ(text(verify(problem, program).diagnostics), "");
}

// ---- group
// ---------------------------------------------------------------------------------------

TEST(GroupRule, TwoOfOnePeerAndDirection) {
  EXPECT_EQ(
      faults_of_file(forwards(2, 2), "0F0,0F1,[0SEND_F0;0SEND_F1]\n[1RECV_F0;1RECV_F1],1F0,1F1\n"),
      "group rank 0 [2] 0SEND_F1: holds two sends to rank 1; pack them into one message, or "
      "issue them one after the other\n"
      "group rank 1 [0] 1RECV_F1: holds two receives from rank 0; pack them into one message, "
      "or issue them one after the other\n");
}

TEST(GroupRule, MoreThanEight) {
  Problem problem = forwards(10, 1);
  std::vector<StageGraph::Edge> edges;
  std::string rows = "0F0,[";
  for (int stage = 1; stage < 10; ++stage) {
    edges.emplace_back(0, stage);
    rows += (stage > 1 ? ";0SEND_F0>" : "0SEND_F0>") + std::to_string(stage);
  }
  rows += "]\n";
  for (int stage = 1; stage < 10; ++stage) {
    rows += std::to_string(stage) + "RECV_F0," + std::to_string(stage) + "F0\n";
  }
  problem.graph = StageGraph(10, edges);
  EXPECT_EQ(faults_of_file(problem, rows),
            "group rank 0 [1] 0SEND_F0: holds 9 transfers; a group of more than 8 may be cut into "
            "several, not at the same place on both ends: issue it as smaller groups\n");
}

// One side in a group, the other one by one: the group ends as a whole, so its send is held up by
// its receive.
TEST(GroupRule, OneSideAloneNamesBothEndsWhereItHangs) {
  const std::string cycle =
      " semantics: cycle rank0 [0SEND_F1;0RECV_B0] <-> rank1 1RECV_F2: rank0 [0SEND_F1;0RECV_B0] "
      "holds up rank0 0SEND_F2; rank0 0SEND_F2 is the other end of rank1 1RECV_F2; rank1 1RECV_F2 "
      "holds up rank1 1SEND_B0; rank1 1SEND_B0 is the other end of rank0 [0SEND_F1;0RECV_B0]; "
      "swapping sends and receives on odd ranks alone is no proof against it, one order of all "
      "transfers is: verify --repair\n";
  const std::string grouped =
      "0F0,0SEND_F0,0F1,0F2,[0SEND_F1;0RECV_B0],0SEND_F2,0B0,0RECV_B1,0B1,0RECV_B2,0B2\n"
      "1RECV_F0,1F0,1B0,1RECV_F1,1RECV_F2,1SEND_B0,1F1,1B1,1SEND_B1,1F2,1B2,1SEND_B2\n";
  EXPECT_EQ(faults_of_file(chain(2, 3), grouped, std::vector{Semantics::rendezvous}),
            "deadlock rank 0 [4] 0RECV_B0: under rendezvous" + cycle);
  const std::string apart =
      "0F0,0SEND_F0,0F1,0F2,0SEND_F1,0SEND_F2,0RECV_B0,0B0,0RECV_B1,0B1,0RECV_B2,0B2\n"
      "1RECV_F0,1F0,1B0,1RECV_F1,1RECV_F2,1SEND_B0,1F1,1B1,1SEND_B1,1F2,1B2,1SEND_B2\n";
  EXPECT_EQ(faults_of_file(chain(2, 3), apart), "");
}

// ---- dataflow
// ------------------------------------------------------------------------------------

TEST(DataflowRule, AComputeThatNobodyHoldsBack) {
  const Problem problem = forwards(2, 1);
  Program program = compile(problem, order("0F0\n1F0\n"));
  program.ranks[1].instructions[1].waits.count = 0;
  EXPECT_EQ(
      text(verify(problem, program).diagnostics),
      "order rank 1 [1] 1F0: may begin before 1RECV_F0 has ended, which it needs: let it wait "
      "for an event of that\n");
}

// The program before buffers were assigned, nor any wait for them.
Program without_buffers(Program program) {
  for (RankProgram& rank : program.ranks) {
    std::vector<EventWait> waits;
    for (Instruction& instruction : rank.instructions) {
      const auto first = static_cast<std::uint32_t>(waits.size());
      const auto transfers = rank.transfers_of(instruction);
      if (transfers.empty() || transfers.front().is_send) {
        const auto kept = rank.waits_of(instruction);
        waits.insert(waits.end(), kept.begin(), kept.end());
      }
      instruction.waits = {first, static_cast<std::uint32_t>(waits.size()) - first};
      if (instruction.kind == InstructionKind::run) instruction.body = {};
    }
    rank.waits = std::move(waits);
    for (Transfer& transfer : rank.transfers) transfer.slot = kNone;
    rank.accesses.clear();
    rank.slots.clear();
  }
  return program;
}

TEST(DataflowRule, AnEventPassedOnIsEnough) {
  const Problem problem = forwards(2, 2);
  Program program = without_buffers(compile(problem, order("0F0,0F1\n1F0,1F1\n")));
  RankProgram& rank = program.ranks[1];
  // The second compute stands behind the first on their stream, which now waits for both receives.
  std::swap(rank.instructions[1], rank.instructions[2]);
  ASSERT_EQ(rank.instructions[2].op, testing::op("1F0"));
  rank.instructions[2].waits = {0, 2};
  rank.instructions[3].waits = {0, 0};
  EXPECT_EQ(text(verify(problem, program).diagnostics), "");
}

// ---- form, matching
// ------------------------------------------------------------------------------

class Damaged : public ::testing::Test {
 protected:
  std::string faults() const { return text(verify(problem_, program_).diagnostics); }
  Instruction& instruction(std::size_t rank, std::size_t index) {
    return program_.ranks[rank].instructions[index];
  }

  Problem problem_ = forwards(2, 2);
  Program program_ = compile(problem_, order("0F0,0F1\n1F0,1F1\n"));
};

using FormRule = Damaged;

TEST_F(FormRule, AsManyRanksAsTheProblem) {
  program_.ranks.pop_back();
  EXPECT_EQ(faults(), "form: the program has 1 ranks; the problem has 2\n");
}
TEST_F(FormRule, StreamsThatAreThere) {
  instruction(0, 1).stream = 7;
  EXPECT_EQ(faults(), "form rank 0 [1] 0SEND_F0: is on stream 7 of 2\n");
}
TEST_F(FormRule, TablesThatHoldWhatIsPointedTo) {
  instruction(0, 1).waits = {5, 9};
  instruction(1, 0).body = {1, 2};
  EXPECT_EQ(faults(),
            "form rank 0 [1] 0SEND_F0: points outside the tables of its rank\n"
            "form rank 1 [0] 1RECV_F0: points outside the tables of its rank\n");
}
TEST_F(FormRule, OneInstructionATransfer) {
  instruction(0, 3).body = {0, 1};
  EXPECT_EQ(faults(),
            "form rank 0 [3] 0SEND_F1: issues a transfer that another instruction issues too\n");
}
TEST_F(FormRule, AnInstructionForEachTransfer) {
  program_.ranks[0].transfers.push_back(program_.ranks[0].transfers.back());
  EXPECT_EQ(faults(), "form rank 0: holds a transfer or collective that no instruction issues\n");
}
TEST_F(FormRule, TheKernelOfItsOp) {
  instruction(0, 0).kernel = 1;
  instruction(1, 1).kernel = 9;
  EXPECT_EQ(faults(),
            "form rank 0 [0] 0F0: runs the kernel of another op\n"
            "form rank 1 [1] 1F0: runs a kernel that is not there\n");
}
TEST_F(FormRule, PayloadsAndPeersOfTheProblem) {
  program_.ranks[0].transfers[0].payload.microbatch = 9;
  program_.ranks[0].transfers[1].peer = 5;
  EXPECT_EQ(faults(),
            "form rank 0 [1] 0SEND_F0: carries a payload that the problem does not have\n"
            "form rank 0 [3] 0SEND_F1: exchanges data with rank 5; there are 0..1\n");
}
TEST_F(FormRule, CommunicatorsItIsAMemberOf) {
  program_.communicators[0].members = {1};
  instruction(1, 0).communicator = 4;
  EXPECT_EQ(faults(),
            "form rank 0 [1] 0SEND_F0: is on communicator 0, which rank 0 is no member of\n"
            "form rank 0 [3] 0SEND_F1: is on communicator 0, which rank 0 is no member of\n"
            "form rank 1 [0] 1RECV_F0: is on no communicator\n");
  program_.communicators[0].members = {1, 0};
  EXPECT_EQ(faults(), "form: the members of a communicator must ascend\n");
}
TEST_F(FormRule, RecordingsInOrder) {
  instruction(0, 2).records = instruction(0, 0).records;
  EXPECT_EQ(faults(), "form rank 0 [2] 0F1: records an event twice as the same generation\n");
  instruction(0, 2).records = 99;
  EXPECT_EQ(faults(), "form rank 0 [2] 0F1: records an event that is not there\n");
}

using MessageNumbers = Damaged;

TEST_F(MessageNumbers, FollowPlaces) {
  std::swap(program_.ranks[0].transfers[0].sequence, program_.ranks[0].transfers[1].sequence);
  EXPECT_EQ(faults(),
            "matching rank 0 [1] 0SEND_F0: is message 0 of its channel by its place, but numbered "
            "1\n"
            "matching rank 0 [3] 0SEND_F1: is message 1 of its channel by its place, but numbered "
            "0\n");
}
using MessageEnds = Damaged;

TEST_F(MessageEnds, OnDifferentCommunicatorsNeverMeet) {
  program_.communicators.push_back(program_.communicators.front());
  instruction(1, 2).communicator = 1;
  program_.ranks[1].transfers[1].sequence = 0;
  EXPECT_EQ(text(verify(problem_, program_, {}).diagnostics),
            "matching rank 0 [3] 0SEND_F1: meets no receive: its channel has none left for it on "
            "rank 1\n"
            "matching rank 1 [2] 1RECV_F1: meets no send: its channel has none left for it on rank "
            "0\n");
}
TEST(MessageRanks, AreThoseOfItsStages) {
  const Problem problem = forwards(3, 1);
  Program program = compile(problem, order("0F0\n1F0\n2F0\n"));
  program.ranks[0].transfers[0].peer = 2;
  EXPECT_EQ(text(verify(problem, program, {}).diagnostics),
            "matching rank 0 [1] 0SEND_F0: the activation of microbatch 0 from stage 0 to stage 1 "
            "goes from rank 0 to rank 1, not to 2\n"
            "matching rank 0 0SEND_F0: is missing: rank 1 1RECV_F0 has no sender\n");
}

// ---- collectives
// ---------------------------------------------------------------------------------

// Ranks that only call collectives, each on a stream of its communicator.
class Collectives {
 public:
  explicit Collectives(int ranks, std::vector<std::vector<Rank>> communicators)
      : problem_(forwards(ranks, 1)) {
    std::string rows;
    for (int rank = 0; rank < ranks; ++rank) rows += std::to_string(rank) + "F0\n";
    program_ = compile(problem_, order(rows));
    base_ = static_cast<CommunicatorId>(program_.communicators.size());
    for (auto& members : communicators) {
      program_.communicators.push_back(
          {.kind = CommunicatorKind::data_parallel, .members = std::move(members)});
    }
    for (RankProgram& rank : program_.ranks) {
      first_stream_ =
          static_cast<StreamId>(std::max<std::size_t>(first_stream_, rank.streams.size()));
    }
    for (RankProgram& rank : program_.ranks) rank.streams.resize(first_stream_ + std::size_t{4});
  }

  // On stream `stream` of those for collectives.
  Collectives& call(std::size_t rank, int communicator, CollectiveKind kind, int size = 8,
                    int stream = 0) {
    RankProgram& list = program_.ranks[rank];
    Instruction i{.kind = InstructionKind::collective,
                  .stream = static_cast<StreamId>(first_stream_ + stream),
                  .communicator = static_cast<CommunicatorId>(base_ + communicator)};
    i.body = {static_cast<std::uint32_t>(list.collectives.size()), 1};
    std::uint32_t sequence = 0;
    for (const Instruction& before : list.instructions) {
      sequence +=
          before.kind == InstructionKind::collective && before.communicator == i.communicator ? 1
                                                                                              : 0;
    }
    list.collectives.push_back({.kind = kind, .sequence = sequence, .size = Bytes{size}});
    list.instructions.push_back(i);
    return *this;
  }
  [[nodiscard]] std::string faults(std::span<const Semantics> asked = {}) const {
    return text(verify(problem_, program_, asked).diagnostics);
  }
  [[nodiscard]] bool completes() const {
    return verify(problem_, program_, {}).semantics.back().completes;
  }
  Program& program() { return program_; }

 private:
  Problem problem_;
  Program program_;
  CommunicatorId base_ = 0;
  StreamId first_stream_ = 0;
};

constexpr auto kReduce = CollectiveKind::all_reduce;
constexpr auto kGather = CollectiveKind::all_gather;

TEST(CollectiveRule, TheSameOnAllMembers) {
  Collectives same(3, {{0, 1, 2}});
  for (const std::size_t rank : {0U, 1U, 2U}) same.call(rank, 0, kReduce).call(rank, 0, kGather);
  EXPECT_EQ(same.faults(kAllSemantics), "");
  EXPECT_TRUE(same.completes());
}

TEST(CollectiveRule, AnotherKindOrSize) {
  Collectives kinds(2, {{0, 1}});
  kinds.call(0, 0, kReduce).call(0, 0, kGather).call(1, 0, kReduce).call(1, 0, kGather, 16);
  EXPECT_EQ(kinds.faults(),
            "collective rank 1 [3]: is all_gather 1 of communicator 1 with 16 B, which meets "
            "all_gather 1 of communicator 1 with 8 B on rank 0\n");
}

TEST(CollectiveRule, OneThatAMemberNeverCalls) {
  Collectives missing(2, {{0, 1}});
  missing.call(0, 0, kReduce).call(0, 0, kGather).call(1, 0, kReduce);
  EXPECT_EQ(missing.faults(),
            "collective rank 1: calls 1 collectives of communicator 1, rank 0 calls 2\n");
  EXPECT_FALSE(missing.completes());
}

TEST(CollectiveRule, CommunicatorsInTheSameOrderOnSharedRanks) {
  Collectives crossed(2, {{0, 1}, {0, 1}});
  crossed.call(0, 0, kReduce).call(0, 1, kGather);
  crossed.call(1, 1, kGather).call(1, 0, kReduce);
  EXPECT_EQ(crossed.faults(),
            "collective rank 1 [2]: calls all_gather 0 of communicator 2 where rank 0 calls "
            "all_reduce 0 of communicator 1: ranks that share communicators must go through their "
            "collectives in one order\n");
  EXPECT_FALSE(crossed.completes());
  EXPECT_EQ(crossed.faults(std::vector{Semantics::buffered}),
            crossed.faults() +
                "deadlock rank 0 [2]: under buffered semantics: cycle rank0 all_reduce 0 <-> rank1 "
                "all_gather 0: rank0 all_reduce 0 holds up rank0 all_gather 0; rank0 all_gather 0 "
                "is the other end of rank1 all_gather 0; rank1 all_gather 0 holds up rank1 "
                "all_reduce 0; rank1 all_reduce 0 is the other end of rank0 all_reduce 0\n");
}

// On streams of their own nothing hangs here, but the order of launches still differs.
TEST(CollectiveRule, HoldsOnSeparateStreamsToo) {
  Collectives crossed(2, {{0, 1}, {0, 1}});
  crossed.call(0, 0, kReduce, 8, 0).call(0, 1, kGather, 8, 1);
  crossed.call(1, 1, kGather, 8, 1).call(1, 0, kReduce, 8, 0);
  EXPECT_TRUE(crossed.completes());
  EXPECT_NE(crossed.faults(), "");
}

TEST(CollectiveRule, CommunicatorsThatShareOneRankAreFree) {
  Collectives apart(3, {{0, 1}, {1, 2}});
  apart.call(0, 0, kReduce).call(1, 1, kGather).call(1, 0, kReduce).call(2, 1, kGather);
  EXPECT_EQ(apart.faults(kAllSemantics), "");
}

TEST(CollectiveRule, NumbersFollowPlaces) {
  Collectives numbered(2, {{0, 1}});
  numbered.call(0, 0, kReduce).call(1, 0, kReduce);
  numbered.program().ranks[1].collectives[0].sequence = 3;
  EXPECT_EQ(numbered.faults(),
            "collective rank 1 [2]: is collective 0 of communicator 1 by its place, but numbered "
            "3\n");
}

}  // namespace
}  // namespace counterflow
