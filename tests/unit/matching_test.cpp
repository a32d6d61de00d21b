#include "scheduler/graph/matching.h"

#include <gtest/gtest.h>

#include <vector>

namespace counterflow {
namespace {

// Programs of transfers alone, each an instruction of its own unless joined.
class Wires {
 public:
  explicit Wires(std::size_t ranks) { program_.ranks.resize(ranks); }

  Wires& add(std::size_t rank, bool is_send, std::uint16_t peer, CommunicatorId communicator = 0) {
    RankProgram& list = program_.ranks[rank];
    Instruction instruction{.kind = InstructionKind::transfer, .communicator = communicator};
    instruction.body = {static_cast<std::uint32_t>(list.transfers.size()), 1};
    Transfer transfer;
    transfer.is_send = is_send;
    transfer.peer = peer;
    list.transfers.push_back(transfer);
    list.instructions.push_back(instruction);
    return *this;
  }
  Wires& send(std::size_t rank, std::uint16_t peer, CommunicatorId communicator = 0) {
    return add(rank, true, peer, communicator);
  }
  Wires& receive(std::size_t rank, std::uint16_t peer, CommunicatorId communicator = 0) {
    return add(rank, false, peer, communicator);
  }
  // Makes the last two instructions of a rank one group.
  Wires& join(std::size_t rank) {
    RankProgram& list = program_.ranks[rank];
    list.instructions.pop_back();
    ++list.instructions.back().body.count;
    return *this;
  }
  [[nodiscard]] const Program& program() const { return program_; }

 private:
  Program program_;
};

using End = Matching::End;

TEST(Matching, IsFirstInFirstOutOnAChannel) {
  Wires wires(2);
  wires.send(0, 1).send(0, 1).receive(1, 0).receive(1, 0);
  const Matching matching(wires.program());
  EXPECT_EQ(matching.partner(0, 0), (End{1, 0}));
  EXPECT_EQ(matching.partner(0, 1), (End{1, 1}));
  EXPECT_EQ(matching.partner(1, 0), (End{0, 0}));
  EXPECT_EQ(matching.partner(1, 1), (End{0, 1}));
}

TEST(Matching, KeepsDirectionsPeersAndCommunicatorsApart) {
  Wires wires(3);
  wires.send(0, 1, 0).send(0, 1, 1).send(0, 2, 0).receive(0, 1, 0);
  wires.receive(1, 0, 1).receive(1, 0, 0).send(1, 0, 0);
  wires.receive(2, 0, 0);
  const Matching matching(wires.program());
  EXPECT_EQ(matching.partner(0, 0), (End{1, 1}));
  EXPECT_EQ(matching.partner(0, 1), (End{1, 0}));
  EXPECT_EQ(matching.partner(0, 2), (End{2, 0}));
  EXPECT_EQ(matching.partner(0, 3), (End{1, 2}));
}

TEST(Matching, LeavesWhatHasNoCounterpart) {
  Wires wires(2);
  wires.send(0, 1).send(0, 1).receive(1, 0).receive(1, 0, 3);
  const Matching matching(wires.program());
  EXPECT_TRUE(matching.partner(0, 0).exists());
  EXPECT_FALSE(matching.partner(0, 1).exists());
  EXPECT_FALSE(matching.partner(1, 1).exists());
}

TEST(Matching, ToAPeerThatIsNotThereIsNoMatch) {
  Wires wires(1);
  wires.send(0, 7).receive(0, 7);
  const Matching matching(wires.program());
  EXPECT_FALSE(matching.partner(0, 0).exists());
  EXPECT_FALSE(matching.partner(0, 1).exists());
}

TEST(Matching, KnowsTheInstructionOfAGroupsTransfers) {
  Wires wires(2);
  wires.send(0, 1).send(0, 1).join(0).send(0, 1);
  wires.receive(1, 0).receive(1, 0).receive(1, 0);
  const Matching matching(wires.program());
  EXPECT_EQ(matching.instruction(0, 0), 0U);
  EXPECT_EQ(matching.instruction(0, 1), 0U);
  EXPECT_EQ(matching.instruction(0, 2), 1U);
  EXPECT_EQ(matching.partner(0, 2), (End{1, 2}));
  EXPECT_EQ(matching.instruction(1, 2), 2U);
}

}  // namespace
}  // namespace counterflow
