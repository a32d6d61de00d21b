#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "executor/collectives.h"
#include "executor/meetings.h"
#include "executor/threads.h"
#include "executor/virtual_streams.h"
#include "scheduler/graph/prerequisites.h"

namespace counterflow {
namespace {

using exec::Buffer;

using Vectors = std::vector<std::vector<float>>;

Vectors after(CollectiveKind kind, Vectors vectors) {
  std::vector<Buffer> buffers;
  for (auto& vector : vectors) buffers.push_back(std::as_writable_bytes(std::span(vector)));
  exec::perform(kind, buffers);
  return vectors;
}

TEST(Collectives, DoWhatTheirNamesSay) {
  const Vectors start = {{1, 2, 3}, {10, 20, 30}, {100, 200, 300}};
  EXPECT_EQ(after(CollectiveKind::all_reduce, start),
            (Vectors{{111, 222, 333}, {111, 222, 333}, {111, 222, 333}}));
  EXPECT_EQ(after(CollectiveKind::reduce_scatter, start),
            (Vectors{{111, 2, 3}, {10, 222, 30}, {100, 200, 333}}));
  EXPECT_EQ(after(CollectiveKind::all_gather, start),
            (Vectors{{1, 20, 300}, {1, 20, 300}, {1, 20, 300}}));
  EXPECT_EQ(after(CollectiveKind::all_to_all, start),
            (Vectors{{1, 10, 100}, {2, 20, 200}, {3, 30, 300}}));
  EXPECT_EQ(after(CollectiveKind::broadcast, start), (Vectors{{1, 2, 3}, {1, 2, 3}, {1, 2, 3}}));
  EXPECT_EQ(after(CollectiveKind::barrier, start), start);
}

TEST(Collectives, CutWhatDoesNotDivideEvenly) {
  // Parts of 5 among 3 hold 1, 2 and 2.
  const Vectors start = {{1, 2, 3, 4, 5}, {10, 20, 30, 40, 50}, {6, 7, 8, 9, 0}};
  EXPECT_EQ(after(CollectiveKind::all_gather, start),
            (Vectors{{1, 20, 30, 9, 0}, {1, 20, 30, 9, 0}, {1, 20, 30, 9, 0}}));
  // A reduce-scatter and an all-gather are an all-reduce.
  EXPECT_EQ(after(CollectiveKind::all_gather, after(CollectiveKind::reduce_scatter, start)),
            after(CollectiveKind::all_reduce, start));
  EXPECT_EQ(after(CollectiveKind::all_reduce, {{4}}), (Vectors{{4}}));
}

TEST(Collectives, AddByAscendingMember) {
  // (1e8 + 1) - 1e8 is 0 in FP32; in another order it is 1.
  EXPECT_EQ(after(CollectiveKind::all_reduce, {{1e8F}, {1}, {-1e8F}})[0][0], 0);
  EXPECT_EQ(after(CollectiveKind::all_reduce, {{1e8F}, {-1e8F}, {1}})[0][0], 1);
}

// Three ranks: each runs something that writes its slot, then all reduce it on a second stream.
Program reducing() {
  Program program;
  program.stages = 1;
  program.microbatches = 1;
  program.kernels = {{.kind = OpKind::forward}};
  program.communicators = {{.kind = CommunicatorKind::data_parallel, .members = {0, 1, 2}}};
  for (int r = 0; r < 3; ++r) {
    RankProgram rank;
    rank.streams = {{}, {.role = StreamRole::data_parallel}};
    rank.slots = {
        {.pool = BufferPool::accumulators, .offset = Bytes{0}, .size = Bytes{sizeof(float)}}};
    rank.accesses = {{.slot = 0, .version = 1, .is_write = 1}};
    rank.collectives = {{.kind = CollectiveKind::all_reduce,
                         .sequence = 0,
                         .slot = 0,
                         .version = 2,
                         .size = Bytes{sizeof(float)}}};
    rank.events = 1;
    rank.waits = {{.event = 0, .generation = 0}};
    rank.instructions = {{.kernel = 0, .op = {OpKind::forward}, .records = 0, .body = {0, 1}},
                         {.kind = InstructionKind::collective,
                          .stream = 1,
                          .communicator = 0,
                          .waits = {0, 1},
                          .body = {0, 1}}};
    program.ranks.push_back(std::move(rank));
  }
  return program;
}

// Writes 1 + rank; keeps what the slots hold when the step ends.
struct OnePlusRank final : exec::Compute {
  void run(const exec::ComputeCall& call) override {
    const Buffer slot = call.memory->buffer(0);
    const auto value = static_cast<float>(1 + call.rank);
    std::memcpy(slot.data(), &value, sizeof value);
    slots[static_cast<std::size_t>(call.rank)] = slot;
  }
  void end_step(Rank rank, int) override {
    float value = 0;
    std::memcpy(&value, slots[static_cast<std::size_t>(rank)].data(), sizeof value);
    sums[static_cast<std::size_t>(rank)] = value;
  }
  std::vector<Buffer> slots{3};
  std::vector<float> sums = std::vector<float>(3);
};

TEST(Collectives, RunOnBothBackends) {
  const Program program = reducing();
  exec::VirtualStreams one_thread;
  exec::Threads threads;
  for (exec::Backend* backend :
       {static_cast<exec::Backend*>(&one_thread), static_cast<exec::Backend*>(&threads)}) {
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      OnePlusRank compute;
      const auto run = backend->run(program, compute, {.steps = 2, .seed = seed});
      ASSERT_FALSE(run.failure) << run.failure->reason;
      EXPECT_EQ(compute.sums, (std::vector<float>{6, 6, 6}));
      // Nobody's ends before everybody's has begun.
      for (const auto& a : run.steps.back().ranks) {
        for (const auto& b : run.steps.back().ranks) {
          EXPECT_LE(a.instructions[1].begin, b.instructions[1].end);
        }
      }
    }
  }
}

std::string failure_of(const Program& program) {
  OnePlusRank compute;
  exec::VirtualStreams one_thread;
  exec::Threads threads(std::chrono::seconds(1));
  const auto a = one_thread.run(program, compute, {}).failure;
  const auto b = threads.run(program, compute, {}).failure;
  if (!a || !b) return "";
  EXPECT_EQ(a->reason, b->reason);
  EXPECT_EQ(a->culprit, b->culprit);
  return "rank " + std::to_string(a->rank) + ": " + a->reason + "; culprit " +
         (a->culprit ? std::to_string(*a->culprit) : "none");
}

TEST(Collectives, NameTheMemberThatDoesNotCome) {
  Program program = reducing();
  program.ranks[2].waits[0].generation = 1;  // never recorded
  EXPECT_EQ(failure_of(program),
            "rank 0: all_reduce 0 of communicator 0 waits for rank 2, which has not begun it: rank "
            "2 is at all_reduce 0 of communicator 0; culprit 2");
  program = reducing();
  program.ranks[1].instructions.pop_back();
  EXPECT_EQ(failure_of(program),
            "rank 0: all_reduce 0 of communicator 0 never begins: not every member calls it, or "
            "not for the same; culprit 1");
}

TEST(Collectives, CompareTheVersionsOfSlots) {
  Program program = reducing();
  program.ranks[1].collectives[0].version = 4;
  EXPECT_EQ(failure_of(program),
            "rank 1: writes version 4 of slot 0 (accumulators), which holds version 1; culprit 1");
}

TEST(Prerequisites, ACommunicatorHoldsItsCollectivesBackToo) {
  Program program = reducing();
  RankProgram& rank = program.ranks[0];
  rank.streams.push_back({.role = StreamRole::data_parallel});
  rank.collectives.push_back(rank.collectives[0]);
  Instruction second = rank.instructions[1];
  second.stream = 2;
  second.body.first = 1;
  rank.instructions.push_back(second);
  ExecutionModel model = ExecutionModel::ideal();
  EXPECT_EQ(Prerequisites(program, model).counts()[2], 1U);  // its event
  model.serial_communicators = true;
  EXPECT_EQ(Prerequisites(program, model).counts()[2], 2U);
}

}  // namespace
}  // namespace counterflow
