#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "executor/threads.h"
#include "executor/virtual_streams.h"
#include "reference/expert_parallel_block.h"
#include "reference/model_compute.h"
#include "scheduler/passes/compile.h"
#include "scheduler/problem/copies.h"
#include "scheduler/verify/verify.h"
#include "schedules/registry.h"
#include "tests/support/optimizers.h"
#include "tests/support/phases.h"
#include "tests/support/problems.h"

// The reference model trained through a Program comes to the same losses and gradients as one
// process that knows nothing of pipelines, bit for bit.
namespace counterflow {
namespace {

using reference::MlpShape;
using reference::ModelCompute;

constexpr MlpShape kShape{.rows = 2, .width = 3, .hidden = 4};

// A problem with the schedule made for it.
struct Sample {
  const Family* family = nullptr;
  Problem problem;
};

// Every family at every p it takes of 1, 2, 4, 8; the number of microbatches is the first legal one
// from some number on that divides evenly by nothing much.
std::vector<Sample> every_family() {
  std::vector<Sample> all;
  for (const Family& family : families()) {
    for (const int p : {1, 2, 4, 8}) {
      if (auto problem = testing::ragged_problem(family, p)) {
        all.push_back({&family, std::move(*problem)});
      }
    }
  }
  return all;
}

void expect_the_same_bits(exec::Backend& backend, const Sample& sample,
                          const std::vector<std::uint64_t>& seeds) {
  SCOPED_TRACE(std::string(sample.family->name) + " p=" + std::to_string(sample.problem.ranks()) +
               " m=" + std::to_string(sample.problem.microbatches));
  const auto model = reference::mlp_model<float>(sample.problem, kShape, 17);
  const Problem problem = reference::with_sizes_of(model, sample.problem);
  const Program program = compile(problem, generate(*sample.family, problem));
  ASSERT_TRUE(verify(problem, program).diagnostics.empty());
  const auto expected =
      reference::single_process_step(model, problem, reference::initial_parameters(model));
  for (const std::uint64_t seed : seeds) {
    ModelCompute compute(model, problem);
    const exec::RunResult run = backend.run(program, compute, {.steps = 2, .seed = seed});
    ASSERT_FALSE(run.failure) << run.failure->reason;
    EXPECT_TRUE(compute.result() == expected) << "seed " << seed;
  }
}

TEST(ReferenceModel, EveryFamilyComputesWhatOneProcessDoes) {
  exec::VirtualStreams backend;
  const std::vector<Sample> all = every_family();
  ASSERT_GE(all.size(), families().size() * 3);
  // A hundred seeds and more over all of them.
  std::uint64_t seed = 0;
  for (const Sample& sample : all) expect_the_same_bits(backend, sample, {seed++, seed++});
  EXPECT_GE(seed, 100U);
}

TEST(ReferenceModel, ThreadsComputeTheSame) {
  exec::Threads backend;
  const std::vector<Sample> all = every_family();
  for (std::size_t n = 0; n < 10; ++n) {
    expect_the_same_bits(backend, all[n * 7 % all.size()], {n});
  }
}

// Stages of attention and experts, each computed by an expert-parallel group of one sequence a
// member, against one process that has all sequences and all experts.
void expect_the_same_experts(exec::Backend& backend, const Sample& sample,
                             const std::vector<std::uint64_t>& seeds) {
  SCOPED_TRACE(std::string(sample.family->name) + " p=" + std::to_string(sample.problem.ranks()));
  const std::size_t members = 2 + seeds.front() % 2;
  const reference::MoeShape shape{
      .sequences = members, .length = 2, .width = 3, .hidden = 3, .experts = 2 * members};
  const auto whole = reference::moe_model<float>(sample.problem, shape, 1, 29);
  const auto model = reference::moe_model<float>(sample.problem, shape, members, 29);
  const Problem problem = reference::with_sizes_of(model, sample.problem);
  const Program program = compile(problem, generate(*sample.family, problem));
  const auto expected =
      reference::single_process_step(whole, sample.problem, reference::initial_parameters(whole));
  for (const std::uint64_t seed : seeds) {
    ModelCompute compute(model, problem);
    const exec::RunResult run = backend.run(program, compute, {.seed = seed});
    ASSERT_FALSE(run.failure) << run.failure->reason;
    EXPECT_TRUE(compute.result() == expected) << "seed " << seed;
  }
}

TEST(ReferenceModel, ExpertParallelStagesComputeWhatOneProcessDoes) {
  exec::VirtualStreams virtual_streams;
  exec::Threads threads;
  std::uint64_t seed = 0;
  for (const Sample& sample : every_family()) {
    expect_the_same_experts(virtual_streams, sample, {seed, seed + 1});
    if (seed % 7 == 0) expect_the_same_experts(threads, sample, {seed});
    seed += 2;
  }
  EXPECT_GE(seed, 100U);
}

TEST(ReferenceModel, PhasesFrozenStagesAndSkipLinks) {
  exec::VirtualStreams backend;
  for (const char* name : {"1f1b", "zb-h1", "dualpipe", "zbv", "interleaved-1f1b"}) {
    const Family& family = *find_family(name);
    Sample sample{&family, testing::family_problem(family, 4, family.default_chunks, 9)};
    testing::set_phases(sample.problem, {{PhaseKind::eval, 3},
                                         {PhaseKind::train, 8},
                                         {PhaseKind::log_prob, 2},
                                         {PhaseKind::train, 10}});
    if (family.placement != PlacementKind::bidirectional) sample.problem.frozen[1] = 1;
    sample.problem.frozen[0] = 1;
    expect_the_same_bits(backend, sample, {1, 2});
  }
  const Family& family = *find_family("zb-h1");
  Sample sample{&family, testing::family_problem(family, 5, 1, 7)};
  sample.problem.graph = StageGraph(5, {{0, 2}, {1, 2}, {2, 3}, {2, 4}, {0, 4}, {3, 4}});
  expect_the_same_bits(backend, sample, {1, 2});
}

// What a stage does not hold between F and the backward is gone there, and made again or brought
// back.
TEST(ReferenceModel, StagesThatRecomputeOrOffload) {
  exec::VirtualStreams virtual_streams;
  exec::Threads threads;
  for (const char* name : {"1f1b", "zb-h1", "dualpipe", "zbv", "interleaved-1f1b", "gpipe"}) {
    const Family& family = *find_family(name);
    Sample sample{&family, testing::family_problem(family, 4, family.default_chunks, 8)};
    for (std::size_t s = 0; s < static_cast<std::size_t>(sample.problem.stages()); ++s) {
      sample.problem.memory[s] = {Bytes{8}, Bytes{8}};
    }
    std::vector<Keeping> keeping(static_cast<std::size_t>(sample.problem.stages()));
    keeping[0] = {.kind = KeepingKind::recompute, .store = {}, .restore = Time{3}, .kept = {}};
    keeping[2] = {
        .kind = KeepingKind::offload, .store = Time{2}, .restore = Time{2}, .kept = Bytes{4}};
    keeping.back() = keeping[0];
    sample.problem = with_keeping(std::move(sample.problem), std::move(keeping));
    expect_the_same_bits(virtual_streams, sample, {3, 4});
    expect_the_same_bits(threads, sample, {5});
  }
}

// Steps of training through a program, with reductions, tied parameters and the norm of all
// gradients, against training in one process.
void expect_the_same_training(exec::Backend& backend, const Sample& sample,
                              const testing::OptimizerShape& shape, std::uint64_t seed) {
  SCOPED_TRACE(std::string(sample.family->name) + " p=" + std::to_string(sample.problem.ranks()));
  constexpr int kSteps = 3;
  const reference::Sgd sgd{.rate = 0.5F, .clip = 0.1F};
  const Problem one = testing::with_optimizer(sample.problem, shape);
  const Problem wanted = in_copies(one);
  const auto model = reference::mlp_model<float>(wanted, kShape, 17);
  const Problem problem = reference::with_sizes_of(model, wanted);
  const Program program = compile(problem, in_copies(one, generate(*sample.family, one)));
  const Diagnostics faults = verify(problem, program).diagnostics;
  ASSERT_TRUE(faults.empty()) << faults.front().message;
  ModelCompute compute(model, problem, sgd);
  const exec::RunResult run = backend.run(program, compute, {.steps = kSteps, .seed = seed});
  ASSERT_FALSE(run.failure) << run.failure->reason;
  if (problem.forward_only) return;
  const auto expected = reference::single_process_training(model, problem, sgd, kSteps);
  EXPECT_TRUE(compute.result() == expected.last);
  for (Stage stage = 0; stage < problem.stages(); ++stage) {
    for (int replica = 0; replica < problem.placement.replicas(); ++replica) {
      EXPECT_TRUE(std::ranges::equal(compute.parameters(stage, replica),
                                     expected.parameters[static_cast<std::size_t>(stage)]));
    }
  }
  // It does train, and what is tied stays the same.
  EXPECT_NE(expected.parameters, reference::initial_parameters(model));
  for (const TiedParameters& tied : problem.optimizer->tied) {
    const auto count = tied.size.value / 4;
    const auto& first = expected.parameters[static_cast<std::size_t>(tied.stages.front())];
    const auto& last = expected.parameters[static_cast<std::size_t>(tied.stages.back())];
    EXPECT_TRUE(std::equal(first.end() - count, first.end(), last.end() - count));
  }
}

TEST(ReferenceModel, TrainsLikeOneProcess) {
  exec::VirtualStreams backend;
  std::uint64_t seed = 0;
  for (const Sample& sample : every_family()) {
    expect_the_same_training(backend, sample, {}, seed++);
    expect_the_same_training(
        backend, sample,
        {.bucket = Bytes{0}, .tied = Bytes{8 * std::int64_t(seed % 2)}, .global_norm = false},
        seed++);
  }
}

// Pipelines side by side: copies of a stage end a step with the same parameters, which are those of
// one process that has seen all microbatches.
TEST(ReferenceModel, TrainsDataParallel) {
  exec::VirtualStreams backend;
  std::uint64_t seed = 0;
  for (const Sample& sample : every_family()) {
    if (sample.problem.ranks() > 4) continue;
    expect_the_same_training(backend, sample,
                             {.bucket = Bytes{seed % 2 == 0 ? 64 : 0},
                              .global_norm = seed % 3 != 0,
                              .data_parallel = 2 + static_cast<int>(seed % 2)},
                             seed);
    ++seed;
  }
}

TEST(ReferenceModel, TrainsPhasesDataParallel) {
  exec::Threads backend;
  for (const char* name : {"1f1b", "dualpipe"}) {
    const Family& family = *find_family(name);
    Sample sample{&family, testing::family_problem(family, 4, family.default_chunks, 9)};
    testing::set_phases(sample.problem, {{PhaseKind::eval, 3},
                                         {PhaseKind::train, 8},
                                         {PhaseKind::log_prob, 2},
                                         {PhaseKind::train, 10}});
    expect_the_same_training(backend, sample, {.data_parallel = 3}, 5);
  }
}

TEST(ReferenceModel, TrainsOnThreadsToo) {
  exec::Threads backend;
  const std::vector<Sample> all = every_family();
  for (std::size_t n = 0; n < 10; ++n) {
    expect_the_same_training(backend, all[n * 11 % all.size()], {}, n);
  }
}

TEST(ReferenceModel, SeesAMicrobatchThatIsTakenForAnother) {
  // What is compared can fail: the first stage's F of two microbatches change places.
  const Family& family = *find_family("zb-h1");
  const Problem small = testing::family_problem(family, 2, 1, 3);
  const auto model = reference::mlp_model<float>(small, kShape, 17);
  const Problem problem = reference::with_sizes_of(model, small);
  Program program = compile(problem, generate(family, problem));
  for (Instruction& instruction : program.ranks[0].instructions) {
    const bool is_forward = instruction.op.kind == OpKind::forward;
    if (is_forward && instruction.op.microbatch < 2) instruction.op.microbatch ^= 1;
  }
  ModelCompute compute(model, problem);
  exec::VirtualStreams backend;
  ASSERT_FALSE(backend.run(program, compute, {}).failure);
  EXPECT_FALSE(compute.result() == reference::single_process_step(
                                       model, problem, reference::initial_parameters(model)));
}

}  // namespace
}  // namespace counterflow
