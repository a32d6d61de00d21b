#pragma once

#include "scheduler/problem/config.h"
#include "scheduler/problem/problem.h"

namespace counterflow {

// What the config says of recompute and offload: the ways that stages take always, and those that a
// search may choose. Costs, memory, frozen stages and graph must be filled in. Stages without a
// backward keep nothing anyway and get none. Throws InputError.
void add_keeping(const Config& config, Problem& problem);

}  // namespace counterflow
