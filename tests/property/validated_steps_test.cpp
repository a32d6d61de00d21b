#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "executor/threads.h"
#include "executor/virtual_streams.h"
#include "reference/model_compute.h"
#include "scheduler/passes/compile.h"
#include "scheduler/passes/in_steps.h"
#include "scheduler/problem/copies.h"
#include "scheduler/problem/steps.h"
#include "scheduler/verify/verify.h"
#include "schedules/registry.h"
#include "tests/support/optimizers.h"
#include "tests/support/phases.h"
#include "tests/support/problems.h"

// Steps that do not wait for the norm, and steps that follow each other without a barrier, train
// as one process does, bit for bit: clipped, skipped and as they are.
namespace counterflow {
namespace {

using reference::ModelCompute;
using reference::Poison;
using reference::Sgd;

constexpr int kSteps = 4;
constexpr reference::MlpShape kShape{.rows = 2, .width = 3, .hidden = 4};

// A model, cut into stages, and the programs that train it: of one step, and of all.
struct Trainee {
  Trainee(const Family& of, const Problem& pipeline, const testing::OptimizerShape& shape)
      : family(of),
        one(testing::with_optimizer(pipeline, shape)),
        model(reference::mlp_model<float>(in_copies(one), kShape, 17)),
        problem(reference::with_sizes_of(model, in_copies(one))),
        program(compile(problem, in_copies(one, generate(family, one)))),
        consecutive(in_steps(problem, program, kSteps)) {}

  const Family& family;
  Problem one;
  reference::Model<float> model;
  Problem problem;
  Program program;
  Program consecutive;
};

bool same_numbers(std::span<const float> a, std::span<const float> b) {
  return std::ranges::equal(
      a, b, [](float x, float y) { return x == y || (std::isnan(x) && std::isnan(y)); });
}

void expect_verified(const Problem& problem, const Program& program) {
  const ProgramVerdict verdict = verify(problem, program);
  ASSERT_TRUE(verdict.diagnostics.empty())
      << verdict.diagnostics.front().rule << ": " << verdict.diagnostics.front().message;
  for (const SemanticsVerdict& each : verdict.semantics) EXPECT_TRUE(each.completes);
}

void expect_alike(const Trainee& trainee, const ModelCompute& compute,
                  const reference::Trained& expected) {
  const auto result = compute.result();
  EXPECT_TRUE(same_numbers(result.losses, expected.last.losses));
  for (std::size_t s = 0; s < result.gradients.size(); ++s) {
    EXPECT_TRUE(same_numbers(result.gradients[s], expected.last.gradients[s])) << "stage " << s;
  }
  for (Stage stage = 0; stage < trainee.problem.stages(); ++stage) {
    for (int replica = 0; replica < trainee.problem.placement.replicas(); ++replica) {
      EXPECT_TRUE(std::ranges::equal(compute.parameters(stage, replica),
                                     expected.parameters[static_cast<std::size_t>(stage)]))
          << "stage " << stage << " copy " << replica;
    }
  }
  EXPECT_TRUE(compute.skipped() == expected.skipped);
}

// Step by step, and all steps as one program.
void expect_trained_alike(exec::Backend& backend, const Trainee& trainee, const Sgd& sgd,
                          const Poison& poison, std::uint64_t seed) {
  SCOPED_TRACE(std::string(trainee.family.name) + " p=" + std::to_string(trainee.one.ranks()) +
               " seed " + std::to_string(seed));
  if (trainee.problem.forward_only) return;
  const auto expected =
      reference::single_process_training(trainee.model, trainee.problem, sgd, kSteps, poison);
  {
    ModelCompute compute(trainee.model, trainee.problem, sgd, poison);
    const auto run = backend.run(trainee.program, compute, {.steps = kSteps, .seed = seed});
    ASSERT_FALSE(run.failure) << run.failure->reason;
    expect_alike(trainee, compute, expected);
  }
  {
    SCOPED_TRACE("without a barrier");
    ModelCompute compute(trainee.model, trainee.problem, sgd, poison, kSteps);
    const auto run = backend.run(trainee.consecutive, compute, {.seed = seed});
    ASSERT_FALSE(run.failure) << run.failure->reason;
    expect_alike(trainee, compute, expected);
  }
}

void expect_all_verified(const Trainee& trainee) {
  SCOPED_TRACE(std::string(trainee.family.name) + " p=" + std::to_string(trainee.one.ranks()));
  expect_verified(trainee.problem, trainee.program);
  expect_verified(in_steps(trainee.problem, kSteps), trainee.consecutive);
}

// Every family at every p it takes of 1, 2, 4.
std::vector<std::pair<const Family*, Problem>> every_family() {
  std::vector<std::pair<const Family*, Problem>> all;
  for (const Family& family : families()) {
    for (const int p : {1, 2, 4}) {
      for (int m = p + 1; m < 4 * p + 2; ++m) {
        const int v = family.default_chunks;
        if (refusal(family, {.ranks = p, .microbatches = m, .chunks = v})) continue;
        Problem problem = testing::family_problem(family, p, v, m);
        problem.forward_only = family.forward_only;
        all.emplace_back(&family, std::move(problem));
        break;
      }
    }
  }
  return all;
}

// In one of four cases a gradient is not finite, in one step.
Poison poison_of(const Problem& problem, std::uint64_t seed) {
  if (seed % 4 != 0) return {};
  const bool is_infinite = seed % 8 == 0;
  return {.step = static_cast<int>(seed / 4 % kSteps),
          .op = {OpKind::backward_weight, 0, static_cast<std::uint16_t>(problem.stages() - 1), 0},
          .value = is_infinite ? std::numeric_limits<float>::infinity()
                               : std::numeric_limits<float>::quiet_NaN()};
}

// Clipped in every step, in none, and where the norm has not fallen far enough.
Sgd sgd_of(std::uint64_t seed) {
  constexpr float kClips[] = {0.1F, 100.F, 0.6F};
  return {.rate = 0.5F, .clip = kClips[seed % 3]};
}

testing::OptimizerShape shape_of(std::uint64_t seed, int data_parallel) {
  return {.bucket = Bytes{seed % 2 == 0 ? 64 : 0},
          .tied = Bytes{8 * static_cast<std::int64_t>(seed % 3 == 0)},
          .data_parallel = data_parallel,
          .validation = seed % 5 == 4 ? Validation::before : Validation::after};
}

TEST(ValidatedSteps, OfEveryFamilyTrainLikeOneProcess) {
  exec::VirtualStreams backend;
  std::uint64_t seed = 0;
  for (const auto& [family, problem] : every_family()) {
    for (const int data_parallel : {1, 2}) {
      const Trainee trainee(*family, problem, shape_of(seed, data_parallel));
      expect_all_verified(trainee);
      expect_trained_alike(backend, trainee, sgd_of(seed), poison_of(trainee.problem, seed),
                           seed + 1);
      ++seed;
    }
  }
  EXPECT_GE(seed, 2 * families().size());
}

TEST(ValidatedSteps, OnThreadsToo) {
  exec::Threads backend;
  const auto all = every_family();
  for (std::uint64_t n = 0; n < 12; ++n) {
    const auto& [family, problem] = all[n * 11 % all.size()];
    const Trainee trainee(
        *family, problem,
        {.data_parallel = 1 + static_cast<int>(n % 2), .validation = Validation::after});
    expect_trained_alike(backend, trainee, sgd_of(n), poison_of(trainee.problem, n), n);
  }
}

// Without the norm too, with passes that do not train, and in many orders.
TEST(ValidatedSteps, OfPhasesAndWithoutTheNorm) {
  exec::VirtualStreams backend;
  for (const char* name : {"1f1b", "zb-h2", "dualpipe", "zbv", "interleaved-1f1b"}) {
    const Family& family = *find_family(name);
    Problem problem = testing::family_problem(family, 4, family.default_chunks, 8);
    testing::set_phases(problem,
                        {{PhaseKind::log_prob, 4}, {PhaseKind::train, 8}, {PhaseKind::eval, 2}});
    for (const bool global_norm : {false, true}) {
      const Trainee trainee(family, problem,
                            {.global_norm = global_norm,
                             .validation = global_norm ? Validation::after : Validation::before});
      expect_all_verified(trainee);
      for (std::uint64_t seed = 1; seed < 9; ++seed) {
        expect_trained_alike(backend, trainee, sgd_of(seed), poison_of(trainee.problem, seed),
                             seed);
      }
    }
  }
}

// Some of the steps compared above are amended and others stand, in one and the same run.
TEST(ValidatedSteps, AreClippedInSomeStepsAndNotInOthers) {
  const Family& family = *find_family("1f1b");
  const Trainee trainee(family, testing::family_problem(family, 2, 1, 3), {});
  const auto parameters_after = [&](const Sgd& sgd, int steps) {
    return reference::single_process_training(trainee.model, trainee.problem, sgd, steps)
        .parameters;
  };
  const Sgd free{.rate = 0.5F, .clip = 100};
  // A clip that the first step exceeds and a later one does not: then the later step is the same as
  // without one from there on.
  float clip = 0;
  for (float tried = 0.01F; tried < 10 && clip == 0; tried *= 1.05F) {
    const Sgd sgd{.rate = 0.5F, .clip = tried};
    const auto first = parameters_after(sgd, 1);
    if (first == parameters_after(free, 1)) break;
    const auto trained = reference::single_process_training(trainee.model, trainee.problem, sgd, 3);
    float squares = 0;
    for (const auto& gradient : trained.last.gradients) {
      for (const float value : gradient) squares += value * value;
    }
    if (sgd.factor(squares) == 1) clip = tried;
  }
  ASSERT_GT(clip, 0);
  const Trainee validated(family, testing::family_problem(family, 2, 1, 3),
                          {.validation = Validation::after});
  exec::VirtualStreams backend;
  expect_trained_alike(backend, validated, {.rate = 0.5F, .clip = clip}, {}, 3);
}

}  // namespace
}  // namespace counterflow
