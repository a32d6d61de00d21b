#pragma once

#include "scheduler/problem/config.h"
#include "scheduler/problem/optimizer.h"
#include "scheduler/problem/problem.h"

namespace counterflow {

// The optimizer section on so many stages, its lists and sizes checked. Throws InputError.
[[nodiscard]] Optimizer make_optimizer(const OptimizerConfig& config, int stages);

// Turns the static memory of ranks that keep everything whole into that of ranks that hold shards,
// where parameters are sharded, rounded up.
void shard_static_memory(Problem& problem);

// All copies of the pipeline together stay within what one pipeline may have. Throws InputError.
void check_copies(const Config& config, int stages);

}  // namespace counterflow
