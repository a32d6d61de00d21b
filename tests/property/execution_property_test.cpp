#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "executor/threads.h"
#include "executor/virtual_streams.h"
#include "scheduler/passes/compile.h"
#include "scheduler/verify/verify.h"
#include "schedules/registry.h"
#include "tests/support/keeping_problems.h"
#include "tests/support/problems.h"
#include "tests/support/random_problems.h"
#include "tests/support/value_compute.h"

namespace counterflow {
namespace {

using exec::RunResult;
using exec::VirtualStreams;
using testing::ExpectedValues;
using testing::ValueCompute;

// Room for a value in every slot.
void give_room(Problem& problem) {
  for (Bytes& size : problem.message) size = Bytes{16};
  for (StageMemory& memory : problem.memory) memory = {Bytes{32}, Bytes{16}};
}

std::vector<ExecutionModel> models() {
  ExecutionModel one_queue = ExecutionModel::nccl();
  one_queue.hardware_queues = 1;
  return {ExecutionModel::ideal(), ExecutionModel::nccl(), ExecutionModel::gloo(), one_queue};
}

// Every op of the schedule computed what it must.
void expect_right(const Problem& problem, const Schedule& schedule, const ValueCompute& compute) {
  ExpectedValues expected(problem, schedule);
  for (const auto& order : schedule.ranks) {
    for (const Slot& slot : order) {
      for (const Op& op : {slot.first, slot.second}) {
        if (op.kind == OpKind::none) continue;
        ASSERT_EQ(compute.results().at(ValueCompute::key(op)), expected.of(op)) << to_string(op);
      }
    }
  }
}

// Lowers random problems and runs them under every model.
void run_random_problems(exec::Backend& backend, std::uint64_t seed, int count) {
  testing::RandomProblems problems(seed);
  std::mt19937_64 random(seed + 1);
  for (int n = 0; n < count; ++n) {
    auto [family, problem] = problems.next();
    SCOPED_TRACE(family->name);
    give_room(problem);
    testing::offer_keeping(problem, random, 9);
    problem = testing::any_choice(std::move(problem), random);
    const Schedule schedule = generate(*family, problem);
    const Program program = compile(problem, schedule);
    const ProgramVerdict verdict = verify(problem, program);
    ASSERT_TRUE(verdict.diagnostics.empty()) << verdict.diagnostics.front().message;
    for (const ExecutionModel& model : models()) {
      SCOPED_TRACE(model.name);
      ValueCompute compute;
      const RunResult result =
          backend.run(program, compute,
                      {.steps = 2, .seed = static_cast<std::uint64_t>(n), .execution = model});
      ASSERT_FALSE(result.failure)
          << "rank " << result.failure->rank << ": " << result.failure->reason;
      ASSERT_EQ(result.steps.size(), 2U);
      expect_right(problem, schedule, compute);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(VirtualStreams, EveryInterleavingComputesTheSame) {
  VirtualStreams backend;
  run_random_problems(backend, 5, 300);
}

TEST(Threads, ComputeTheSame) {
  exec::Threads backend;
  run_random_problems(backend, 6, 30);
}

std::map<BufferPool, int> slots_of(const RankProgram& rank) {
  std::map<BufferPool, int> counts;
  for (const BufferSlot& slot : rank.slots) ++counts[slot.pool];
  return counts;
}

TEST(Buffers, DoNotGrowWithTheMicrobatches) {
  for (const Family& family : families()) {
    // These hold every microbatch by design, or all that the limits let them.
    if (family.name == "gpipe" || family.name == "looped-bfs" || family.name == "zb-heuristic") {
      continue;
    }
    const int v = family.default_chunks;
    const Problem few = testing::family_problem(family, 4, v, 16);
    const Problem many = testing::family_problem(family, 4, v, 64);
    const Program small = compile(few, generate(family, few));
    const Program large = compile(many, generate(family, many));
    for (std::size_t r = 0; r < 4; ++r) {
      EXPECT_EQ(slots_of(small.ranks[r]), slots_of(large.ranks[r])) << family.name << " " << r;
    }
  }
}

TEST(Buffers, OneForwardOneBackwardHoldsWhatIsInFlight) {
  const Family& family = *find_family("1f1b");
  const Problem problem = testing::family_problem(family, 4, 1, 64);
  const Program program = compile(problem, generate(family, problem));
  for (int r = 0; r < 4; ++r) {
    auto slots = slots_of(program.ranks[static_cast<std::size_t>(r)]);
    const int in_flight = 4 - r;
    EXPECT_EQ(slots[BufferPool::saved], in_flight);
    // Inputs of what is in flight, one more to receive into, and outputs on their way.
    EXPECT_LE(slots[BufferPool::activations], in_flight + 2) << r;
    EXPECT_LE(slots[BufferPool::gradients], 3) << r;
  }
}

}  // namespace
}  // namespace counterflow
