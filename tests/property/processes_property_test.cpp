#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "executor/processes/faults.h"
#include "executor/processes/rank_run.h"
#include "scheduler/passes/compile.h"
#include "schedules/registry.h"
#include "tests/support/local_mesh.h"
#include "tests/support/mesh_runs.h"
#include "tests/support/problems.h"
#include "tests/support/random_problems.h"
#include "tests/support/value_compute.h"

namespace counterflow {
namespace {

using namespace std::chrono_literals;
using exec::Fault;
using exec::ProcessSettings;
using exec::RankResult;
using testing::ExpectedValues;
using testing::LocalMeshes;
using testing::run_all;
using testing::ValueCompute;

Program one_forward_one_backward(int ranks, int microbatches) {
  const Family& family = *find_family("1f1b");
  Problem problem = testing::family_problem(family, ranks, 1, microbatches);
  for (Bytes& size : problem.message) size = Bytes{16};
  for (StageMemory& memory : problem.memory) memory = {Bytes{32}, Bytes{16}};
  return compile(problem, generate(family, problem));
}

TEST(Processes, ComputeTheSame) {
  testing::RandomProblems problems(8);
  for (int n = 0; n < 12; ++n) {
    auto [family, problem] = problems.next();
    SCOPED_TRACE(family->name);
    for (Bytes& size : problem.message) size = Bytes{16};
    for (StageMemory& memory : problem.memory) memory = {Bytes{32}, Bytes{16}};
    const Schedule schedule = generate(*family, problem);
    const Program program = compile(problem, schedule);
    const ExecutionModel model = n % 3 == 0   ? ExecutionModel::ideal()
                                 : n % 3 == 1 ? ExecutionModel::nccl()
                                              : ExecutionModel::gloo();
    SCOPED_TRACE(model.name);
    ValueCompute compute;
    const auto results = run_all(program, compute, {.run = {.steps = 2, .execution = model}});
    for (const RankResult& result : results) {
      ASSERT_FALSE(result.run.failure) << result.run.failure->reason;
    }
    ASSERT_EQ(results.front().run.steps.size(), 2U);
    for (const Timeline& step : results.front().run.steps) {
      for (std::size_t r = 0; r < program.ranks.size(); ++r) {
        ASSERT_EQ(step.ranks[r].instructions.size(), program.ranks[r].instructions.size());
      }
    }
    ExpectedValues expected(problem, schedule);
    for (const auto& order : schedule.ranks) {
      for (const Slot& slot : order) {
        for (const Op& op : {slot.first, slot.second}) {
          if (op.kind == OpKind::none) continue;
          ASSERT_EQ(compute.results().at(ValueCompute::key(op)), expected.of(op));
        }
      }
    }
  }
}

// All ranks stop, and all that say so name the one that did it.
TEST(Processes, NameWhoSpoiledAMessage) {
  const Program program = one_forward_one_backward(3, 4);
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    const auto& [kind, words] = testing::kSpoiled[seed % testing::kSpoiled.size()];
    // Each rank of three sends at least four messages in a step.
    const Fault fault{kind, static_cast<Rank>(seed % 3), (seed * 7) % 4};
    SCOPED_TRACE(std::string(words) + " by rank " + std::to_string(fault.rank) + ", message " +
                 std::to_string(fault.at));
    ValueCompute compute;
    testing::expect_named(program, compute, fault, words);
  }
}

TEST(Processes, NameARankThatIsGone) {
  const Program program = one_forward_one_backward(3, 4);
  LocalMeshes meshes(3);
  // As if its process had ended in the middle of an op.
  struct Leaving final : exec::Compute {
    explicit Leaving(LocalMeshes& all) : meshes(all) {}
    void run(const exec::ComputeCall& call) override {
      if (call.op != Op{OpKind::forward, 0, 1, 2}) return;
      meshes.take_off(1);
      throw std::runtime_error("off");
    }
    LocalMeshes& meshes;
  } compute(meshes);
  std::vector<std::future<RankResult>> runs;
  for (int rank = 0; rank < 3; ++rank) {
    runs.push_back(std::async(std::launch::async, [&, rank] {
      exec::RankRun run(program, compute, {.run = {}, .patience = 60s}, meshes.of(rank));
      return run.run();
    }));
  }
  for (int rank = 0; rank < 3; ++rank) {
    const RankResult result = runs[static_cast<std::size_t>(rank)].get();
    ASSERT_TRUE(result.run.failure) << rank;
    if (rank == 1) continue;
    EXPECT_EQ(result.run.failure->culprit, 1) << result.run.failure->reason;
    EXPECT_NE(result.run.failure->reason.find("rank 1 is gone"), std::string::npos)
        << result.run.failure->reason;
  }
}

TEST(Processes, NameAnOpThatTakesTooLong) {
  const Program program = one_forward_one_backward(3, 4);
  struct Slow final : exec::Compute {
    void run(const exec::ComputeCall& call) override {
      if (call.op == Op{OpKind::backward, 0, 2, 1}) std::this_thread::sleep_for(6s);
    }
  } compute;
  const ProcessSettings settings{.run = {}, .patience = 2s, .grace = 60s};
  for (const RankResult& result : run_all(program, compute, settings)) {
    EXPECT_FALSE(result.abandoned);
    ASSERT_TRUE(result.run.failure);
    EXPECT_EQ(result.run.failure->rank, 2);
    EXPECT_EQ(result.run.failure->culprit, 2);
    EXPECT_TRUE(result.run.failure->reason.starts_with("2B1 has run for "))
        << result.run.failure->reason;
  }
}

TEST(Processes, AgreeOnTheProgramFirst) {
  const Program program = one_forward_one_backward(2, 4);
  const Program other = one_forward_one_backward(2, 5);
  LocalMeshes meshes(2);
  ValueCompute compute;
  const ProcessSettings settings;
  auto first = std::async(std::launch::async, [&] {
    exec::RankRun run(program, compute, settings, meshes.of(0));
    return run.run();
  });
  exec::RankRun run(other, compute, settings, meshes.of(1));
  const RankResult second = run.run();
  for (const RankResult& result : {first.get(), second}) {
    ASSERT_TRUE(result.run.failure);
    EXPECT_NE(result.run.failure->reason.find("give all ranks the same input"), std::string::npos);
  }
  EXPECT_TRUE(compute.results().empty());
}

}  // namespace
}  // namespace counterflow
