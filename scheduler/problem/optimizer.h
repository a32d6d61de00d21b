#pragma once

#include <vector>

#include "scheduler/ir/units.h"

namespace counterflow {

// Parameters that several stages hold, such as an embedding that is also the output layer.
struct TiedParameters {
  std::vector<Stage> stages;  // ascending, two at least
  Bytes size;  // of their gradients in each of the stages; part of Optimizer::gradients
};

// What follows the last weight gradient of a step: copies of a stage, in both directions and in all
// pipelines side by side, and stages with tied
// parameters, add their gradients up; then each stage makes its step.
struct Optimizer {
  int data_parallel = 1;             // pipelines side by side, each with microbatches of its own
  std::vector<Bytes> gradients;      // [stage] FP32
  Bytes bucket;                      // the most one reduction takes; 0: a stage's all at once
  std::vector<Time> step;            // [stage]
  bool global_norm = false;          // no step before the norm of all gradients is known
  std::vector<TiedParameters> tied;  // no stage twice
};

}  // namespace counterflow
