#include "executor/strict_transport.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace counterflow {
namespace {

using End = Matching::End;

// Takes whatever comes, in any order, as gloo does, and ends it when told.
struct Permissive final : exec::Transport {
  void begin_step(int, Listener& by) override { listener = &by; }
  void post(End end) override { posted.push_back(end.transfer); }
  void arrive(std::uint32_t, std::uint32_t instruction) override { arrived.push_back(instruction); }
  std::vector<std::uint32_t> posted, arrived;
  Listener* listener = nullptr;
};

struct Heard final : exec::Transport::Listener {
  void transfer_ended(End end) override { ended.push_back(end.transfer); }
  void transfer_failed(End end, std::string reason, std::uint32_t culprit) override {
    failure = std::to_string(end.transfer) + " by " + std::to_string(culprit) + ": " + reason;
  }
  void collective_ended(std::uint32_t, std::uint32_t instruction) override {
    ended.push_back(instruction);
  }
  void collective_failed(std::uint32_t, std::uint32_t instruction, std::string reason,
                         std::uint32_t culprit) override {
    failure = std::to_string(instruction) + " by " + std::to_string(culprit) + ": " + reason;
  }
  std::vector<std::uint32_t> ended;
  std::string failure;
};

// Rank 0 sends to rank 1: each entry a group of so many messages of one communicator, in issue
// order. Instructions are called 0SEND_F0, 0SEND_F1, ...
Program sends(const std::vector<std::uint32_t>& groups, std::uint16_t peers = 1) {
  Program program;
  program.communicators = {{.members = {0, 1}}};
  program.ranks.resize(1U + peers);
  RankProgram& rank = program.ranks[0];
  for (const std::uint32_t count : groups) {
    Instruction group;
    group.kind = InstructionKind::transfer;
    group.communicator = 0;
    group.op = {OpKind::send_forward, 0, 0, static_cast<Microbatch>(rank.instructions.size())};
    group.body = {static_cast<std::uint32_t>(rank.transfers.size()), count};
    for (std::uint32_t k = 0; k < count; ++k) {
      Transfer transfer;
      transfer.is_send = true;
      transfer.peer = static_cast<std::uint16_t>(1 + k % peers);
      rank.transfers.push_back(transfer);
    }
    rank.instructions.push_back(group);
  }
  return program;
}

struct Strict {
  explicit Strict(Program what, const ExecutionModel& rules = ExecutionModel::nccl())
      : program(std::move(what)), matching(program), transport(program, matching, rules, inner) {
    transport.begin_step(0, heard);
  }
  // What is wrong with it, if anything is.
  std::string post(std::uint32_t transfer) {
    heard.failure.clear();
    transport.post({0, transfer});
    return heard.failure;
  }
  std::string arrive(std::uint32_t instruction) {
    heard.failure.clear();
    transport.arrive(0, instruction);
    return heard.failure;
  }
  void end(std::uint32_t transfer) { inner.listener->transfer_ended({0, transfer}); }

  Program program;
  Matching matching;
  Permissive inner;
  Heard heard;
  exec::StrictTransport transport;
};

TEST(StrictTransport, LetsPassWhatKeepsTheRules) {
  Strict strict(sends({1, 1, 1}));
  for (std::uint32_t k = 0; k < 3; ++k) {
    EXPECT_EQ(strict.post(k), "");
    strict.end(k);
  }
  EXPECT_EQ(strict.inner.posted, (std::vector<std::uint32_t>{0, 1, 2}));
  EXPECT_EQ(strict.heard.ended, (std::vector<std::uint32_t>{0, 1, 2}));
}

TEST(StrictTransport, RefusesAMessageAheadOfItsTurn) {
  for (const ExecutionModel& rules : {ExecutionModel::nccl(), ExecutionModel::gloo()}) {
    Strict strict(sends({1, 1, 1}), rules);
    EXPECT_EQ(strict.post(0), "");
    strict.end(0);
    EXPECT_EQ(strict.post(2),
              "2 by 0: 0SEND_F2 is message 2 of its channel with rank 1, and message 1 is not "
              "posted");
    EXPECT_EQ(strict.inner.posted, (std::vector<std::uint32_t>{0}));
  }
}

TEST(StrictTransport, RefusesTwoGroupsOfACommunicatorAtOnce) {
  Strict nccl(sends({1, 1}));
  EXPECT_EQ(nccl.post(0), "");
  EXPECT_EQ(nccl.post(1), "1 by 0: 0SEND_F1 begins while 0SEND_F0 is under way on communicator 0");
  // Under gloo's rules tags keep them apart.
  Strict gloo(sends({1, 1}), ExecutionModel::gloo());
  EXPECT_EQ(gloo.post(0), "");
  EXPECT_EQ(gloo.post(1), "");
  // Of different communicators each is alone.
  Program two = sends({1, 1});
  two.communicators.push_back(two.communicators.front());
  two.ranks[0].instructions[1].communicator = 1;
  Strict apart(std::move(two));
  EXPECT_EQ(apart.post(0), "");
  EXPECT_EQ(apart.post(1), "");
}

TEST(StrictTransport, AGroupIsUnderWayUntilAllOfItHasEnded) {
  Strict strict(sends({2, 1}, 2));
  EXPECT_EQ(strict.post(0), "");
  EXPECT_EQ(strict.post(1), "");
  strict.end(0);
  EXPECT_NE(strict.post(2), "");
  Strict other(sends({2, 1}, 2));
  EXPECT_EQ(other.post(0), "");
  EXPECT_EQ(other.post(1), "");
  other.end(1);
  other.end(0);
  EXPECT_EQ(other.post(2), "");
}

TEST(StrictTransport, RefusesGroupsThatMayBeCut) {
  EXPECT_EQ(Strict(sends({8}, 8)).post(0), "");
  EXPECT_EQ(Strict(sends({9}, 9)).post(0),
            "0 by 0: 0SEND_F0 is a group of 9 transfers; NCCL keeps eight together");
  EXPECT_EQ(Strict(sends({2})).post(0),
            "0 by 0: 0SEND_F0 is a group with two transfers to rank 1; NCCL may cut it");
  EXPECT_EQ(Strict(sends({2}), ExecutionModel::gloo()).post(0), "");
  // One each way is not two one way.
  Program both = sends({2});
  both.ranks[0].transfers[1].is_send = false;
  EXPECT_EQ(Strict(std::move(both)).post(0), "");
}

// A message, then two collectives of the same communicator, as instructions 0, 1 and 2.
Program with_collectives() {
  Program program = sends({1});
  RankProgram& rank = program.ranks[0];
  for (std::uint32_t k = 0; k < 2; ++k) {
    Collective collective;
    collective.sequence = k;
    rank.collectives.push_back(collective);
    Instruction instruction;
    instruction.kind = InstructionKind::collective;
    instruction.communicator = 0;
    instruction.body = {k, 1};
    rank.instructions.push_back(instruction);
  }
  return program;
}

TEST(StrictTransport, HoldsCollectivesToTheSame) {
  Strict strict(with_collectives());
  EXPECT_EQ(strict.post(0), "");
  strict.end(0);
  EXPECT_EQ(strict.arrive(1), "");
  strict.inner.listener->collective_ended(0, 1);
  EXPECT_EQ(strict.arrive(2), "");
  EXPECT_EQ(strict.inner.arrived, (std::vector<std::uint32_t>{1, 2}));

  // One ahead of its turn, whatever the rules.
  for (const ExecutionModel& rules : {ExecutionModel::nccl(), ExecutionModel::gloo()}) {
    Strict early(with_collectives(), rules);
    EXPECT_EQ(early.arrive(2), "2 by 0: all_reduce 1 of communicator 0 begins before collective 0");
    EXPECT_TRUE(early.inner.arrived.empty());
  }

  // Two things at once on a communicator, where it does one at a time.
  Strict nccl(with_collectives());
  EXPECT_EQ(nccl.post(0), "");
  EXPECT_EQ(nccl.arrive(1),
            "1 by 0: all_reduce 0 of communicator 0 begins while 0SEND_F0 is under way on "
            "communicator 0");
  Strict both(with_collectives());
  EXPECT_EQ(both.arrive(1), "");
  EXPECT_EQ(both.arrive(2),
            "2 by 0: all_reduce 1 of communicator 0 begins while all_reduce 0 of communicator 0 is "
            "under way on communicator 0");
  Strict gloo(with_collectives(), ExecutionModel::gloo());
  EXPECT_EQ(gloo.arrive(1), "");
  EXPECT_EQ(gloo.arrive(2), "");
}

TEST(StrictTransport, ForgetsAStepAtTheNext) {
  Strict strict(sends({1, 1}));
  EXPECT_EQ(strict.post(0), "");  // and does not end
  strict.transport.begin_step(1, strict.heard);
  EXPECT_EQ(strict.post(0), "");
}

TEST(StrictTransport, PassesOnWhatTheOtherSays) {
  Strict strict(sends({1}));
  strict.inner.listener->transfer_failed({0, 0}, "other bytes", 1);
  EXPECT_EQ(strict.heard.failure, "0 by 1: other bytes");
  strict.inner.listener->collective_ended(0, 0);
  EXPECT_EQ(strict.heard.ended, (std::vector<std::uint32_t>{0}));
  strict.inner.listener->collective_failed(0, 5, "no", 1);
  EXPECT_EQ(strict.heard.failure, "5 by 1: no");
}

}  // namespace
}  // namespace counterflow
