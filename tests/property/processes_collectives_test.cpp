#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "executor/threads.h"
#include "scheduler/passes/compile.h"
#include "schedules/registry.h"
#include "tests/support/mesh_runs.h"
#include "tests/support/optimizers.h"
#include "tests/support/problems.h"

// Collectives between processes come to the bits that they come to in one, and what goes wrong in
// them is found.
namespace counterflow {
namespace {

using namespace std::chrono_literals;
using exec::Buffer;
using exec::Fault;
using exec::RankResult;
using testing::run_all;

struct Step {
  CollectiveKind kind = CollectiveKind::barrier;
  CommunicatorId communicator = 0;
  std::int64_t size = 0;
};

// Every rank writes its slot, then calls on a second stream what it is a member of.
Program calling(int ranks, const std::vector<std::vector<Rank>>& communicators,
                const std::vector<Step>& steps) {
  Program program;
  program.stages = 1;
  program.microbatches = 1;
  program.kernels = {{.kind = OpKind::forward}};
  for (const auto& members : communicators) {
    program.communicators.push_back({.kind = CommunicatorKind::data_parallel, .members = members});
  }
  std::int64_t most = 0;
  for (const Step& step : steps) most = std::max(most, step.size);
  for (Rank r = 0; r < ranks; ++r) {
    RankProgram rank;
    rank.streams = {{}, {.role = StreamRole::data_parallel}};
    rank.slots = {{.pool = BufferPool::accumulators, .offset = Bytes{0}, .size = Bytes{most}}};
    rank.accesses = {{.slot = 0, .version = 1, .is_write = 1}};
    rank.events = 1;
    rank.waits = {{.event = 0, .generation = 0}};
    rank.instructions = {{.kernel = 0, .op = {OpKind::forward}, .records = 0, .body = {0, 1}}};
    std::vector<std::uint32_t> next(communicators.size());
    std::uint32_t version = 1;
    for (const Step& step : steps) {
      if (std::ranges::count(communicators[step.communicator], r) == 0) continue;
      Collective what;
      what.kind = step.kind;
      what.sequence = next[step.communicator]++;
      if (step.kind != CollectiveKind::barrier) {
        what.slot = 0;
        what.version = ++version;
        what.size = Bytes{step.size};
      }
      rank.instructions.push_back(
          {.kind = InstructionKind::collective,
           .stream = 1,
           .communicator = step.communicator,
           .waits = {0, 1},
           .body = {static_cast<std::uint32_t>(rank.collectives.size()), 1}});
      rank.collectives.push_back(what);
    }
    program.ranks.push_back(std::move(rank));
  }
  return program;
}

// Writes numbers whose sum depends on the order; keeps what the slot holds when the step ends.
class Vectors final : public exec::Compute {
 public:
  explicit Vectors(std::size_t ranks) : ends(ranks), slots_(ranks) {}

  void run(const exec::ComputeCall& call) override {
    const Buffer slot = call.memory->buffer(0);
    auto& mine = slots_[static_cast<std::size_t>(call.rank)];
    mine = slot;
    std::uint64_t state = static_cast<std::uint64_t>(call.rank) + 1;
    for (std::size_t at = 0; at < slot.size(); at += sizeof(float)) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      const auto exponent = static_cast<int>(state >> 60U);
      const float value = static_cast<float>(state >> 40U) / static_cast<float>(1 << exponent);
      std::memcpy(slot.data() + at, &value, std::min(sizeof value, slot.size() - at));
    }
  }
  void end_step(Rank rank, int) override {
    const Buffer slot = slots_[static_cast<std::size_t>(rank)];
    ends[static_cast<std::size_t>(rank)].assign(slot.begin(), slot.end());
  }

  std::vector<std::vector<std::byte>> ends;  // [rank]

 private:
  std::vector<Buffer> slots_;
};

void expect_the_same(const Program& program) {
  Vectors expected(program.ranks.size());
  exec::Threads threads;
  const exec::RunResult one = threads.run(program, expected, {.steps = 2});
  ASSERT_FALSE(one.failure) << one.failure->reason;
  for (const ExecutionModel& model : {ExecutionModel::nccl(), ExecutionModel::gloo()}) {
    Vectors compute(program.ranks.size());
    const auto results = run_all(program, compute, {.run = {.steps = 2, .execution = model}});
    for (const RankResult& result : results) {
      ASSERT_FALSE(result.run.failure) << result.run.failure->reason;
    }
    EXPECT_EQ(compute.ends, expected.ends);
    EXPECT_EQ(results.front().run.steps.size(), 2U);
  }
}

TEST(Processes, ComeToTheSameInEveryCollective) {
  const std::vector<Rank> all = {0, 1, 2};
  for (const CollectiveKind kind :
       {CollectiveKind::all_reduce, CollectiveKind::reduce_scatter, CollectiveKind::all_gather,
        CollectiveKind::all_to_all, CollectiveKind::broadcast, CollectiveKind::barrier}) {
    for (const std::int64_t size : {4, 8, 28, 4000}) {
      SCOPED_TRACE(std::string(name(kind)) + " of " + std::to_string(size));
      expect_the_same(calling(3, {all}, {{kind, 0, size}}));
    }
  }
  // What is no row of elements is cut between bytes, if it is not summed.
  for (const CollectiveKind kind :
       {CollectiveKind::all_gather, CollectiveKind::all_to_all, CollectiveKind::broadcast}) {
    for (const std::int64_t size : {1, 7, 4001}) {
      expect_the_same(calling(3, {all}, {{kind, 0, size}}));
    }
  }
}

TEST(Processes, RunCollectivesOfSeveralCommunicators) {
  const std::vector<std::vector<Rank>> communicators = {{0, 1, 2, 3}, {1, 3}, {0, 2, 3}, {2}};
  constexpr CollectiveKind kKinds[] = {CollectiveKind::all_reduce, CollectiveKind::all_to_all,
                                       CollectiveKind::barrier,    CollectiveKind::reduce_scatter,
                                       CollectiveKind::broadcast,  CollectiveKind::all_gather};
  std::uint32_t state = 1;
  const auto draw = [&](std::uint32_t bound) {
    state = state * 1664525U + 1013904223U;
    return (state >> 16U) % bound;
  };
  for (int n = 0; n < 5; ++n) {
    std::vector<Step> steps;
    for (int k = 0; k < 12; ++k) {
      const auto size = 4 * static_cast<std::int64_t>(1 + draw(50));
      steps.push_back({kKinds[draw(6)], static_cast<CommunicatorId>(draw(4)), size});
    }
    expect_the_same(calling(4, communicators, steps));
  }
}

TEST(Processes, NameWhoNeverComesToACollective) {
  Program program = calling(3, {{0, 1, 2}}, {{CollectiveKind::all_reduce, 0, 40}});
  struct Slow final : exec::Compute {
    void run(const exec::ComputeCall& call) override {
      if (call.rank == 1) std::this_thread::sleep_for(6s);
    }
  } slow;
  for (const RankResult& result :
       run_all(program, slow, {.run = {}, .patience = 2s, .grace = 60s})) {
    ASSERT_TRUE(result.run.failure);
    EXPECT_EQ(result.run.failure->culprit, 1);
    EXPECT_TRUE(result.run.failure->reason.starts_with("0F0 has run for "))
        << result.run.failure->reason;
  }
  // Members that do not agree never begin.
  Vectors compute(3);
  program.ranks[1].instructions.pop_back();
  for (const RankResult& result : run_all(program, compute, {.run = {}, .patience = 2s})) {
    ASSERT_TRUE(result.run.failure);
    EXPECT_EQ(result.run.failure->culprit, 1);
    EXPECT_NE(result.run.failure->reason.find("never begins"), std::string::npos)
        << result.run.failure->reason;
  }
}

TEST(Processes, FindCollectivesThatWaitForEachOther) {
  const std::vector<std::vector<Rank>> twice = {{0, 1}, {0, 1}};
  Program program = calling(2, twice, {{.communicator = 0}, {.communicator = 1}});
  std::swap(program.ranks[1].instructions[1], program.ranks[1].instructions[2]);
  Vectors compute(2);
  for (const RankResult& result : run_all(program, compute, {.run = {}, .patience = 2s})) {
    ASSERT_TRUE(result.run.failure);
    EXPECT_FALSE(result.run.failure->culprit);
    EXPECT_TRUE(result.run.failure->reason.starts_with("barrier 0 of communicator "))
        << result.run.failure->reason;
    EXPECT_NE(result.run.failure->reason.find("which has not begun it"), std::string::npos)
        << result.run.failure->reason;
  }
}

TEST(Processes, CompareTheVersionsOfCollectives) {
  Program program = calling(2, {{0, 1}}, {{CollectiveKind::all_reduce, 0, 40}});
  program.ranks[1].collectives[0].version = 4;
  Vectors compute(2);
  for (const RankResult& result : run_all(program, compute, {.run = {}, .patience = 60s})) {
    ASSERT_TRUE(result.run.failure);
    EXPECT_EQ(result.run.failure->culprit, 1);
    EXPECT_EQ(result.run.failure->reason,
              "writes version 4 of slot 0 (accumulators), which holds version 1");
  }
}

struct Nothing final : exec::Compute {
  void run(const exec::ComputeCall&) override {}
};

// How many messages a rank sends in a step, those of collectives included.
std::uint32_t messages_of(const Program& program, const RankProgram& rank) {
  std::uint32_t count = 0;
  for (const Transfer& transfer : rank.transfers) count += transfer.is_send ? 1U : 0U;
  for (const Instruction& instruction : rank.instructions) {
    if (instruction.kind != InstructionKind::collective) continue;
    const auto& members = program.communicators[instruction.communicator].members;
    const bool sums = rank.collectives[instruction.body.first].kind == CollectiveKind::all_reduce;
    count += static_cast<std::uint32_t>(members.size() - 1) * (sums ? 2 : 1);
  }
  return count;
}

TEST(Processes, NameWhoSpoiledAMessageOfACollective) {
  const Family& family = *find_family("1f1b");
  Problem problem = testing::with_optimizer(testing::family_problem(family, 3, 1, 3));
  for (Bytes& size : problem.message) size = Bytes{16};
  for (StageMemory& memory : problem.memory) memory = {Bytes{32}, Bytes{400}};
  const Program program = compile(problem, generate(family, problem));
  for (std::uint32_t seed = 0; seed < 30; ++seed) {
    const auto& [kind, words] = testing::kSpoiled[seed % testing::kSpoiled.size()];
    const auto rank = static_cast<Rank>(seed % 3);
    const std::uint32_t sent = messages_of(program, program.ranks[static_cast<std::size_t>(rank)]);
    // From the last one backwards: those after the last gradient are collectives.
    const Fault fault{kind, rank, sent - 1 - seed * 7 % (sent - 2)};
    SCOPED_TRACE(std::string(words) + " by rank " + std::to_string(fault.rank) + ", message " +
                 std::to_string(fault.at) + " of " + std::to_string(sent));
    Nothing compute;
    testing::expect_named(program, compute, fault, words);
  }
}

}  // namespace
}  // namespace counterflow
