#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <string>

#include "executor/threads.h"
#include "executor/virtual_streams.h"
#include "scheduler/passes/compile.h"
#include "schedules/registry.h"
#include "tests/support/problems.h"
#include "tests/support/programs.h"

namespace counterflow {
namespace {

using exec::ComputeCall;
using exec::Failure;
using exec::RunResult;
using exec::RunSettings;
using testing::find;
using testing::one_forward_one_backward;

struct Nothing final : exec::Compute {
  void run(const ComputeCall&) override {}
};

// Both backends must say the same.
std::string failure_of(const Program& program, const RunSettings& settings = {}) {
  Nothing compute;
  exec::VirtualStreams one_thread;
  exec::Threads threads(std::chrono::seconds(1));
  const RunResult a = one_thread.run(program, compute, settings);
  const RunResult b = threads.run(program, compute, settings);
  if (!a.failure || !b.failure) return "";
  EXPECT_EQ(a.failure->rank, b.failure->rank);
  EXPECT_EQ(a.failure->instruction, b.failure->instruction);
  EXPECT_EQ(a.failure->reason, b.failure->reason);
  EXPECT_TRUE(a.steps.empty());
  return "rank " + std::to_string(a.failure->rank) + ": " + a.failure->reason;
}

TEST(Backends, RunWhatIsWellFormed) {
  EXPECT_EQ(failure_of(one_forward_one_backward(3, 5)), "");
}

TEST(Backends, NameATransferNobodyMatches) {
  Program program = one_forward_one_backward(2, 2);
  RankProgram& rank = program.ranks[0];
  Instruction extra = rank.instructions[find(program, 0, {OpKind::send_forward, 0, 0, 1})];
  rank.transfers.push_back(rank.transfers[extra.body.first]);
  extra.body.first = static_cast<std::uint32_t>(rank.transfers.size() - 1);
  extra.records = kNone;
  rank.instructions.push_back(extra);
  EXPECT_EQ(failure_of(program),
            "rank 0: 0SEND_F1 waits for rank 1, which has nothing to match it");
}

TEST(Backends, NameWhatTheOtherEndIsDoing) {
  // Rank 1 wants to send the gradient of microbatch 1 before it has received its activation.
  Program program = one_forward_one_backward(2, 2);
  auto& rank = program.ranks[1];
  const std::uint32_t receive = find(program, 1, {OpKind::receive_forward, 0, 1, 0});
  const std::uint32_t backward = find(program, 1, {OpKind::backward, 0, 1, 1});
  const auto wait = static_cast<std::uint32_t>(rank.waits.size());
  rank.instructions[backward].records = rank.events;
  rank.waits.push_back({rank.events++, 0});
  rank.instructions[receive].waits = {wait, 1};
  EXPECT_EQ(failure_of(program),
            "rank 0: 0SEND_F0 waits for 1RECV_F0 of rank 1, which has not begun: rank 1 is at "
            "1RECV_F0");
}

TEST(Backends, CompareWhatTheTwoEndsCarry) {
  Program program = one_forward_one_backward(2, 2);
  program.ranks[1].transfers[0].payload.microbatch = 1;
  EXPECT_EQ(failure_of(program),
            "rank 1: rank 0 sends the activation of microbatch 0 from stage 0 to stage 1, rank 1 "
            "receives the activation of microbatch 1 from stage 0 to stage 1");
}

TEST(Backends, CompareTheVersionsOfSlots) {
  Program program = one_forward_one_backward(1, 2);
  auto& accesses = program.ranks[0].accesses;
  const auto read = std::find_if(accesses.begin(), accesses.end(),
                                 [](const Access& access) { return access.is_write == 0; });
  ASSERT_NE(read, accesses.end());
  read->version = 7;
  EXPECT_EQ(failure_of(program),
            "rank 0: reads version 7 of slot 0 (saved), which holds version 1");
}

TEST(Backends, TellWhatAComputeThrew) {
  struct Bad final : exec::Compute {
    void run(const ComputeCall& call) override {
      if (call.op == Op{OpKind::backward, 0, 1, 1}) throw std::runtime_error("not a number");
    }
  } compute;
  const Program program = one_forward_one_backward(2, 3);
  exec::VirtualStreams one_thread;
  exec::Threads threads;
  for (exec::Backend* backend :
       {static_cast<exec::Backend*>(&one_thread), static_cast<exec::Backend*>(&threads)}) {
    const RunResult result = backend->run(program, compute, {.steps = 2});
    ASSERT_TRUE(result.failure);
    EXPECT_EQ(result.failure->rank, 1);
    EXPECT_EQ(result.failure->instruction, find(program, 1, {OpKind::backward, 0, 1, 1}));
    EXPECT_EQ(result.failure->reason, "not a number");
  }
}

TEST(VirtualStreams, DrawTheSameInterleavingForTheSameSeed) {
  const Program program = one_forward_one_backward(4, 6);
  Nothing compute;
  exec::VirtualStreams backend;
  const auto timeline = [&](std::uint64_t seed) {
    return backend.run(program, compute, {.seed = seed}).steps.front();
  };
  EXPECT_EQ(timeline(1), timeline(1));
  EXPECT_NE(timeline(1), timeline(2));
}

}  // namespace
}  // namespace counterflow
