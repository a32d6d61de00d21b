#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "executor/threads.h"
#include "executor/virtual_streams.h"
#include "reference/expert_parallel_block.h"
#include "reference/model_compute.h"
#include "scheduler/passes/compile.h"
#include "scheduler/verify/verify.h"
#include "schedules/registry.h"
#include "tests/support/mesh_runs.h"
#include "tests/support/optimizers.h"
#include "tests/support/problems.h"

// The reference model trained through messages that are packed on their way: what one process comes
// to that packs and unpacks at the same borders, bit for bit, and near to what it is without.
namespace counterflow {
namespace {

using reference::ModelCompute;
using reference::StepResult;

// A message is 6 x 50 elements: two blocks and a part of one.
constexpr reference::MlpShape kShape{.rows = 6, .width = 50, .hidden = 8};

constexpr Compression kBf16{DataType::bf16, DataType::bf16};
constexpr Compression kFp8{DataType::fp8, DataType::fp8};
constexpr Compression kMixed{DataType::fp8, DataType::bf16};
constexpr Compression kForward{DataType::fp8, DataType::bytes};

struct Sample {
  const Family* family = nullptr;
  Problem problem;
};

// Also families that keep neighbouring stages on a rank, where nothing is packed.
std::vector<Sample> samples() {
  std::vector<Sample> all;
  for (const char* name : {"gpipe", "1f1b", "interleaved-1f1b", "zb-h1", "zbv", "dualpipe",
                           "dualpipev", "forward-only"}) {
    const Family& family = *find_family(name);
    for (const int p : {2, 4}) {
      if (auto problem = testing::ragged_problem(family, p)) {
        all.push_back({&family, std::move(*problem)});
      }
    }
  }
  return all;
}

StepResult<float> expected(const reference::Model<float>& model, const Problem& problem) {
  return reference::single_process_step(model, problem, reference::initial_parameters(model));
}

// The relative distance of all gradients, taken as one vector.
double distance(const StepResult<float>& a, const StepResult<float>& b) {
  double apart = 0;
  double length = 0;
  for (std::size_t s = 0; s < a.gradients.size(); ++s) {
    for (std::size_t i = 0; i < a.gradients[s].size(); ++i) {
      apart += std::pow(static_cast<double>(a.gradients[s][i]) - b.gradients[s][i], 2);
      length += std::pow(static_cast<double>(b.gradients[s][i]), 2);
    }
  }
  return length > 0 ? std::sqrt(apart / length) : 0;
}

void expect_the_same_bits(exec::Backend& backend, Sample sample, const Compression& compression,
                          std::uint64_t seed) {
  SCOPED_TRACE(std::string(sample.family->name) + " p=" + std::to_string(sample.problem.ranks()));
  sample.problem.compression = compression;
  const auto model = reference::mlp_model<float>(sample.problem, kShape, 17);
  const Problem problem = reference::with_sizes_of(model, sample.problem);
  const Program program = compile(problem, generate(*sample.family, problem));
  ASSERT_TRUE(verify(problem, program).diagnostics.empty());
  for (const ExecutionModel& execution : {ExecutionModel::ideal(), ExecutionModel::nccl()}) {
    ModelCompute compute(model, problem);
    const exec::RunResult run =
        backend.run(program, compute, {.steps = 2, .seed = seed, .execution = execution});
    ASSERT_FALSE(run.failure) << run.failure->reason;
    EXPECT_TRUE(compute.result() == expected(model, problem)) << execution.name;
  }
}

TEST(CompressedReference, PipelinesComputeWhatOneProcessDoes) {
  exec::VirtualStreams backend;
  std::uint64_t seed = 0;
  for (const Sample& sample : samples()) {
    for (const Compression& each : {kBf16, kFp8, kMixed, kForward}) {
      expect_the_same_bits(backend, sample, each, seed++);
    }
  }
}

TEST(CompressedReference, ThreadsComputeTheSame) {
  exec::Threads backend;
  std::uint64_t seed = 0;
  for (const Sample& sample : samples()) {
    expect_the_same_bits(backend, sample, seed % 2 == 0 ? kMixed : kFp8, seed);
    ++seed;
  }
}

TEST(CompressedReference, ProcessesComputeTheSame) {
  for (const char* name : {"1f1b", "zbv", "dualpipe"}) {
    const Family& family = *find_family(name);
    for (const ExecutionModel& execution : {ExecutionModel::ideal(), ExecutionModel::nccl()}) {
      SCOPED_TRACE(std::string(name) + " " + execution.name);
      Problem small = testing::family_problem(family, 4, family.default_chunks, 8);
      small.compression = kMixed;
      const auto model = reference::mlp_model<float>(small, kShape, 17);
      const Problem problem = reference::with_sizes_of(model, small);
      const Program program = compile(problem, generate(family, problem));
      // Ranks keep their own copies of stages, so one compute can be that of all.
      ModelCompute compute(model, problem);
      const auto results =
          testing::run_all(program, compute, {.run = {.steps = 2, .execution = execution}});
      for (const exec::RankResult& result : results) {
        ASSERT_FALSE(result.run.failure) << result.run.failure->reason;
      }
      EXPECT_TRUE(compute.result() == expected(model, problem));
    }
  }
}

// The checksum is of what is on the wire.
TEST(CompressedReference, ASpoiledMessageIsSeen) {
  const Family& family = *find_family("1f1b");
  Problem small = testing::family_problem(family, 3, 1, 4);
  small.compression = kFp8;
  const auto model = reference::mlp_model<float>(small, kShape, 17);
  const Problem problem = reference::with_sizes_of(model, small);
  const Program program = compile(problem, generate(family, problem));
  ModelCompute compute(model, problem);
  const auto results =
      testing::run_all(program, compute, {.run = {.steps = 1}}, {{exec::FaultKind::corrupt, 1, 2}});
  for (const exec::RankResult& result : results) {
    ASSERT_TRUE(result.run.failure);
    EXPECT_EQ(result.run.failure->culprit, 1U);
    EXPECT_NE(result.run.failure->reason.find("other bytes"), std::string::npos)
        << result.run.failure->reason;
  }
}

TEST(CompressedReference, ExpertsComputeTheSame) {
  exec::VirtualStreams backend;
  const reference::MoeShape shape{
      .sequences = 2, .length = 4, .width = 20, .hidden = 6, .experts = 4};
  for (Sample sample : samples()) {
    if (sample.problem.ranks() > 2) continue;
    SCOPED_TRACE(std::string(sample.family->name));
    sample.problem.compression = kMixed;
    const auto model = reference::moe_model<float>(sample.problem, shape, 2, 29);
    const auto whole = reference::moe_model<float>(sample.problem, shape, 1, 29);
    const Problem problem = reference::with_sizes_of(model, sample.problem);
    const Program program = compile(problem, generate(*sample.family, problem));
    ModelCompute compute(model, problem);
    ASSERT_FALSE(backend.run(program, compute, {.seed = 3}).failure);
    EXPECT_TRUE(compute.result() == expected(whole, problem));
  }
}

TEST(CompressedReference, TrainsLikeOneProcess) {
  constexpr int kSteps = 3;
  const reference::Sgd sgd{.rate = 0.5F, .clip = 0.1F};
  exec::Threads backend;
  for (const char* name : {"1f1b", "dualpipe"}) {
    const Family& family = *find_family(name);
    SCOPED_TRACE(name);
    Problem small =
        testing::with_optimizer(testing::family_problem(family, 4, family.default_chunks, 8));
    small.compression = kMixed;
    const auto model = reference::mlp_model<float>(small, kShape, 17);
    const Problem problem = reference::with_sizes_of(model, small);
    const Program program = compile(problem, generate(family, problem));
    ModelCompute compute(model, problem, sgd);
    const exec::RunResult run = backend.run(program, compute, {.steps = kSteps});
    ASSERT_FALSE(run.failure) << run.failure->reason;
    const auto trained = reference::single_process_training(model, problem, sgd, kSteps);
    EXPECT_TRUE(compute.result() == trained.last);
  }
}

// Losses within 1 % (BF16) and 5 % (FP8) of those without, all gradients together within 2 % and
// 10 %: each of p - 1 borders adds at most what its codec does to a message.
TEST(CompressedReference, IsNearToWhatItIsWithout) {
  for (Sample sample : samples()) {
    SCOPED_TRACE(std::string(sample.family->name) + " p=" + std::to_string(sample.problem.ranks()));
    const auto model = reference::mlp_model<float>(sample.problem, kShape, 17);
    const auto plain = expected(model, sample.problem);
    const auto expect_near = [&](const Compression& compression, double losses, double gradients) {
      sample.problem.compression = compression;
      const auto packed = expected(model, sample.problem);
      EXPECT_FALSE(packed == plain);
      for (std::size_t mb = 0; mb < plain.losses.size(); ++mb) {
        EXPECT_NEAR(packed.losses[mb], plain.losses[mb], losses * std::fabs(plain.losses[mb]));
      }
      EXPECT_LE(distance(packed, plain), gradients);
    };
    expect_near(kBf16, 0.01, 0.02);
    expect_near(kFp8, 0.05, 0.1);
  }
}

}  // namespace
}  // namespace counterflow
