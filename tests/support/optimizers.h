#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "scheduler/problem/problem.h"

namespace counterflow::testing {

// A step after the last gradient: the first and the last stage share parameters, everything is
// reduced in small buckets, and all steps wait for the norm, or are
// validated by it.
struct OptimizerShape {
  Bytes gradients{400};
  Bytes bucket{64};
  Bytes tied{40};
  Time step{5};
  bool global_norm = true;
  int data_parallel = 1;
  Validation validation = Validation::before;
  std::optional<Sharding> sharding{};  // of `parameters` the first, of every stage
};

// Stages of 200 B, as BF16 has them where gradients have 400 B.
[[nodiscard]] inline Sharding sharded(Resharding reshard, int prefetch) {
  return {.parameters = {Bytes{200}}, .reshard = reshard, .prefetch = prefetch};
}

[[nodiscard]] inline Problem with_optimizer(Problem problem, const OptimizerShape& shape = {}) {
  const auto stages = static_cast<std::size_t>(problem.stages());
  problem.optimizer = Optimizer{.data_parallel = shape.data_parallel,
                                .gradients = std::vector<Bytes>(stages, shape.gradients),
                                .bucket = shape.bucket,
                                .step = std::vector<Time>(stages, shape.step),
                                .global_norm = shape.global_norm,
                                .tied = {},
                                .sharding = shape.sharding};
  if (shape.sharding) {
    problem.optimizer->sharding->parameters.assign(stages, shape.sharding->parameters.front());
  }
  if (stages > 1 && shape.tied.value > 0) {
    problem.optimizer->tied.push_back({{0, problem.stages() - 1}, shape.tied});
  }
  if (shape.validation == Validation::after) {
    problem.optimizer->validation = Validation::after;
    problem.optimizer->validate.assign(stages, shape.step);
    problem.optimizer->snapshot.assign(stages, shape.gradients);
  }
  return problem;
}

}  // namespace counterflow::testing
