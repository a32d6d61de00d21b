#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "reference/model_compute.h"
#include "scheduler/passes/compile.h"
#include "scheduler/passes/in_steps.h"
#include "scheduler/problem/copies.h"
#include "scheduler/problem/steps.h"
#include "scheduler/verify/verify.h"
#include "schedules/registry.h"
#include "tests/support/optimizers.h"
#include "tests/support/problems.h"

namespace counterflow::testing {

// The reference model in a pipeline each rank of which computes for itself: what they come to is
// brought together and compared, bit for bit, with what one process comes to.
class TrainedApart {
 public:
  static constexpr int kSteps = 3;

  struct Sample {
    std::string family;
    int ranks = 2;
    // The steps after the last gradient; none: there are losses and gradients alone.
    bool has_optimizer = false;
    OptimizerShape optimizer{};
    bool is_consecutive = false;  // all steps as one program
    Compression compression{};    // of messages
  };

  // A family of each kind at two sizes, with and without reductions, norm and tied parameters,
  // validated at last.
  static std::vector<Sample> covering_samples() {
    std::vector<Sample> all;
    for (const char* family : {"1f1b", "zb-h1", "interleaved-1f1b", "zbv", "dualpipe"}) {
      for (const int ranks : {2, 4}) {
        all.push_back({family, ranks});
        all.push_back({family, ranks, true});
        all.push_back(
            {family, ranks, true, {.bucket = Bytes{0}, .tied = {}, .global_norm = false}});
        all.push_back({family, ranks, true, {.validation = Validation::after}, ranks == 4});
      }
    }
    // Messages packed on their way.
    all.push_back({.family = "zbv", .ranks = 2, .has_optimizer = true, .compression = kMixed});
    all.push_back({.family = "dualpipe", .ranks = 4, .compression = kMixed});
    // Side by side, parameters sharded.
    all.push_back(
        {"1f1b", 2, true, {.data_parallel = 2, .sharding = sharded(Resharding::after_use, 1)}});
    all.push_back({"interleaved-1f1b",
                   2,
                   true,
                   {.data_parallel = 2, .sharding = sharded(Resharding::after_use, 1)}});
    all.push_back({"dualpipev",
                   2,
                   true,
                   {.bucket = Bytes{0},
                    .global_norm = false,
                    .data_parallel = 3,
                    .sharding = sharded(Resharding::after_use, 0)}});
    all.push_back(
        {"dualpipe", 2, true, {.data_parallel = 2, .sharding = sharded(Resharding::never, 2)}});
    return all;
  }

  explicit TrainedApart(const Sample& sample)
      : one_(problem_of(sample)),
        wanted_(in_copies(one_)),
        model_(reference::mlp_model<float>(wanted_, {.rows = 2, .width = 3, .hidden = 4}, 17)),
        problem_(reference::with_sizes_of(model_, wanted_)),
        consecutive_(sample.is_consecutive ? kSteps : 1),
        program_(in_steps(
            problem_,
            compile(problem_, in_copies(one_, generate(*find_family(sample.family), one_))),
            consecutive_)) {}
  TrainedApart(const TrainedApart&) = delete;
  TrainedApart& operator=(const TrainedApart&) = delete;

  // Of all pipelines side by side.
  [[nodiscard]] Rank ranks() const { return problem_.ranks(); }
  [[nodiscard]] const Program& program() const { return program_; }
  // How often it has to be run.
  [[nodiscard]] int runs() const { return kSteps / consecutive_; }
  [[nodiscard]] std::span<const Chunk> chunks_of(Rank rank) const {
    return problem_.placement.chunks_of(rank);
  }
  // A compute for one rank, with nothing of the others.
  [[nodiscard]] reference::ModelCompute compute() const {
    return {model_, problem_, kSgd, {}, consecutive_};
  }

  // `of_rank` [rank]: what a compute came to, in the order of the rank's chunks.
  void expect_same_bits(const std::vector<std::vector<reference::CopyResult>>& of_rank) const {
    const Diagnostics faults = verify(in_steps(problem_, consecutive_), program_).diagnostics;
    ASSERT_TRUE(faults.empty()) << faults.front().message;
    const auto stages = static_cast<std::size_t>(problem_.stages());
    std::vector<reference::CopyResult> copies(
        stages * static_cast<std::size_t>(problem_.placement.replicas()));
    for (Rank rank = 0; rank < problem_.ranks(); ++rank) {
      const auto& mine = of_rank.at(static_cast<std::size_t>(rank));
      const auto chunks = chunks_of(rank);
      ASSERT_EQ(mine.size(), chunks.size());
      for (std::size_t k = 0; k < chunks.size(); ++k) {
        copies[chunks[k].replica * stages + static_cast<std::size_t>(chunks[k].stage)] = mine[k];
      }
    }
    const auto result = reference::combine(problem_, copies);
    const auto start = reference::initial_parameters(model_);
    if (!problem_.optimizer) {
      EXPECT_TRUE(result == reference::single_process_step(model_, problem_, start));
      return;
    }
    const auto expected = reference::single_process_training(model_, problem_, kSgd, kSteps);
    EXPECT_TRUE(result == expected.last);
    EXPECT_EQ(reference::combine_parameters(problem_, copies), expected.parameters);
    for (std::size_t c = 0; c < copies.size() && !problem_.optimizer->sharding; ++c) {
      EXPECT_EQ(copies[c].parameters, expected.parameters[c % stages]);
    }
    EXPECT_NE(expected.parameters, start);
  }

 private:
  static constexpr reference::Sgd kSgd{.rate = 0.5F, .clip = 0.1F};
  static constexpr Compression kMixed{.activations = DataType::fp8, .gradients = DataType::bf16};

  static Problem problem_of(const Sample& sample) {
    Problem problem = *ragged_problem(*find_family(sample.family), sample.ranks);
    problem.compression = sample.compression;
    return sample.has_optimizer ? with_optimizer(std::move(problem), sample.optimizer) : problem;
  }

  Problem one_;
  Problem wanted_;
  reference::Model<float> model_;
  Problem problem_;
  int consecutive_;
  Program program_;
};

}  // namespace counterflow::testing
