#pragma once

#include "scheduler/partition/balance.h"
#include "scheduler/problem/config.h"

// From a config with layers to one with stages.
namespace counterflow {

// What balancing the config's layers on this placement means: a layer loads its rank with its F, I
// and W, over the microbatches' factors. Without limits. With two replicas the two ranks that hold
// the same stages are one group, so a bottleneck counts both directions' microbatches.
[[nodiscard]] CutProblem cut_problem(const Config& config, const PipelineShape& shape);

// The cut of the config's layers on this placement: the one its layout gives, else the balanced
// one. Throws InputError where the layout has another number of stages or layers are too few.
[[nodiscard]] Cut layer_cut(const Config& config, const PipelineShape& shape);

// The config with `stages` in the place of its layers: each figure the sum over a stage's layers,
// static memory added to its rank's.
[[nodiscard]] Config with_stages(const Config& config, const PipelineShape& shape, const Cut& cut);

}  // namespace counterflow
