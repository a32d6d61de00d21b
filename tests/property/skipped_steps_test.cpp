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
#include "reference/numbers.h"
#include "scheduler/passes/compile.h"
#include "scheduler/verify/verify.h"
#include "schedules/registry.h"
#include "tests/support/optimizers.h"
#include "tests/support/problems.h"

// A NaN or an infinity anywhere in a step: all ranks skip it, and training goes on as in one
// process that skips it too, bit for bit.
namespace counterflow {
namespace {

using reference::ModelCompute;
using reference::Poison;
using reference::SkippedStep;

constexpr int kSteps = 4;
constexpr const char* kFamilies[] = {"1f1b", "zb-h1", "dualpipe", "dualpipev",
                                     "zbv",  "gpipe", "chimera",  "interleaved-1f1b"};
constexpr reference::MlpShape kShape{.rows = 2, .width = 3, .hidden = 4};
constexpr reference::Sgd kSgd{.rate = 0.5F, .clip = 0.1F};

// A model, cut into stages, and the program that trains it.
struct Trainee {
  Trainee(const std::string& family_name, const testing::OptimizerShape& shape, int p = 4)
      : family(*find_family(family_name)),
        wanted(testing::with_optimizer(
            testing::family_problem(family, p, family.default_chunks, 2 * p), shape)),
        model(reference::mlp_model<float>(wanted, kShape, 17)),
        problem(reference::with_sizes_of(model, wanted)),
        program(compile(problem, generate(family, problem))) {}

  const Family& family;
  Problem wanted;
  reference::Model<float> model;
  Problem problem;
  Program program;
};

// Draws 0..bound-1.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : seed_(seed) {}
  int operator()(int bound) {
    const double share = (reference::uniform(seed_, 1, next_++) + 1) / 2;
    return std::min(bound - 1, static_cast<int>(share * bound));
  }

 private:
  std::uint64_t seed_;
  std::uint64_t next_ = 0;
};

Poison any_poison(const Problem& problem, Draw& draw) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr OpKind kKinds[] = {OpKind::forward, OpKind::backward_input, OpKind::backward_weight};
  constexpr float kValues[] = {std::numeric_limits<float>::quiet_NaN(), kInfinity, -kInfinity};
  Poison poison{.step = draw(kSteps), .value = kValues[draw(3)]};
  poison.op.kind = kKinds[draw(3)];
  // The first stage's I has nobody to tell.
  const int least = poison.op.kind == OpKind::backward_input ? 1 : 0;
  poison.op.stage = static_cast<std::uint16_t>(least + draw(problem.stages() - least));
  poison.op.microbatch = static_cast<Microbatch>(draw(problem.microbatches));
  return poison;
}

bool same_numbers(std::span<const float> a, std::span<const float> b) {
  return std::ranges::equal(
      a, b, [](float x, float y) { return x == y || (std::isnan(x) && std::isnan(y)); });
}

void expect_parameters(const ModelCompute& compute, const Problem& problem,
                       const reference::Parameters<float>& expected) {
  for (Stage stage = 0; stage < problem.stages(); ++stage) {
    for (int replica = 0; replica < problem.placement.replicas(); ++replica) {
      EXPECT_TRUE(std::ranges::equal(compute.parameters(stage, replica),
                                     expected[static_cast<std::size_t>(stage)]))
          << "stage " << stage << " copy " << replica;
    }
  }
}

// Runs it and compares with one process; what both skipped.
std::vector<SkippedStep> trained_alike(exec::Backend& backend, const Trainee& trainee,
                                       const Poison& poison, std::uint64_t seed) {
  SCOPED_TRACE(std::string(trainee.family.name) + " seed " + std::to_string(seed));
  ModelCompute compute(trainee.model, trainee.problem, kSgd, poison);
  const exec::RunResult run =
      backend.run(trainee.program, compute, {.steps = kSteps, .seed = seed});
  if (run.failure) {
    ADD_FAILURE() << run.failure->reason;
    return {};
  }
  const auto expected =
      reference::single_process_training(trainee.model, trainee.problem, kSgd, kSteps, poison);
  expect_parameters(compute, trainee.problem, expected.parameters);
  const auto result = compute.result();
  EXPECT_TRUE(same_numbers(result.losses, expected.last.losses));
  for (std::size_t s = 0; s < result.gradients.size(); ++s) {
    EXPECT_TRUE(same_numbers(result.gradients[s], expected.last.gradients[s])) << "stage " << s;
  }
  EXPECT_TRUE(compute.skipped() == expected.skipped);
  return expected.skipped;
}

void expect_one_step_skipped(exec::Backend& backend, std::uint64_t seed) {
  Draw draw(seed);
  const Trainee trainee(kFamilies[seed % std::size(kFamilies)],
                        {.bucket = Bytes{16 * draw(5)}, .tied = Bytes{8 * draw(2)}});
  ASSERT_TRUE(verify(trainee.problem, trainee.program).diagnostics.empty());
  const Poison poison = any_poison(trainee.problem, draw);
  const auto skipped = trained_alike(backend, trainee, poison, seed);
  ASSERT_EQ(skipped.size(), 1U);
  EXPECT_EQ(skipped[0].step, poison.step);
  EXPECT_EQ(skipped[0].stages.size(), static_cast<std::size_t>(trainee.problem.stages()));
  ASSERT_TRUE(skipped[0].first);
  EXPECT_EQ(skipped[0].first->microbatch, poison.op.microbatch);
  // Every step has the same data, so a step that is skipped is one step less.
  const auto shorter =
      reference::single_process_training(trainee.model, trainee.problem, kSgd, kSteps - 1);
  const auto expected =
      reference::single_process_training(trainee.model, trainee.problem, kSgd, kSteps, poison);
  EXPECT_EQ(expected.parameters, shorter.parameters);
  EXPECT_TRUE(shorter.skipped.empty());
}

TEST(SkippedSteps, AreSkippedByEveryRankOnVirtualStreams) {
  exec::VirtualStreams backend;
  for (std::uint64_t seed = 0; seed < 64; ++seed) expect_one_step_skipped(backend, seed);
}

TEST(SkippedSteps, AreSkippedByEveryRankOnThreads) {
  exec::Threads backend;
  for (std::uint64_t seed = 100; seed < 116; ++seed) expect_one_step_skipped(backend, seed);
}

// Then only who has the wrong gradients knows: every copy of the stage, from the same sums.
TEST(SkippedSteps, WithoutTheNormEachStageDecidesForItself) {
  exec::VirtualStreams backend;
  for (std::uint64_t seed = 200; seed < 232; ++seed) {
    Draw draw(seed);
    const Trainee trainee(kFamilies[seed % std::size(kFamilies)],
                          {.tied = Bytes{8 * draw(2)}, .global_norm = false});
    const Poison poison = any_poison(trainee.problem, draw);
    const auto skipped = trained_alike(backend, trainee, poison, seed);
    ASSERT_EQ(skipped.size(), 1U);
    EXPECT_FALSE(skipped[0].whole);
    if (poison.op.kind != OpKind::backward_weight) continue;
    const bool has_stage = std::ranges::count(skipped[0].stages, Stage{poison.op.stage}) == 1;
    EXPECT_TRUE(has_stage);
    // The first element of a stage's gradients is not one of those that are tied.
    EXPECT_EQ(skipped[0].stages.size(), 1U);
  }
}

TEST(SkippedSteps, SquaresThatOverflowSkipToo) {
  exec::VirtualStreams backend;
  const Trainee trainee("zb-h1", {});
  const Poison poison{.step = 1, .op = {OpKind::backward_weight, 0, 2, 3}, .value = 1e30F};
  const auto skipped = trained_alike(backend, trainee, poison, 1);
  ASSERT_EQ(skipped.size(), 1U);
  EXPECT_FALSE(skipped[0].first);
  EXPECT_EQ(to_string(skipped[0]), "step 1: the norm of the gradients overflows; step skipped");
}

TEST(SkippedSteps, AreToldWithTheRankThatSawItFirst) {
  exec::VirtualStreams backend;
  const Trainee trainee("1f1b", {});
  const Poison poison{.step = 3, .op = {OpKind::backward_weight, 0, 2, 1}};
  EXPECT_EQ(to_string(trained_alike(backend, trainee, poison, 1).at(0)),
            "step 3: gradients not finite, first seen by rank 2 in W of stage 2 for microbatch 1; "
            "step skipped");
  // What F of stage 1 gets wrong reaches the loss, so the last stage's gradients show it first.
  const Poison early{.step = 0, .op = {OpKind::forward, 0, 1, 5}};
  EXPECT_EQ(to_string(trained_alike(backend, trainee, early, 2).at(0)),
            "step 0: gradients not finite, first seen by rank 3 in W of stage 3 for microbatch 5; "
            "step skipped");
  const Trainee apart("1f1b", {.tied = Bytes{0}, .global_norm = false});
  EXPECT_EQ(to_string(trained_alike(backend, apart, poison, 3).at(0)),
            "step 3: gradients not finite, first seen by rank 2 in W of stage 2 for microbatch 1; "
            "stage 2 skipped it");
}

}  // namespace
}  // namespace counterflow
