#pragma once

#include "scheduler/ir/schedule.h"
#include "scheduler/problem/problem.h"

// Passes over the stages put one behind the other.
namespace counterflow {

// All forwards of a problem on any placement. On `loop` the forward-only family's order; elsewhere
// each rank takes its stages in ascending order, each with all its microbatches: no stage waits for
// one after it, so this completes. O(ops).
[[nodiscard]] Schedule forward_pass(const Problem& problem);

// Adds a pass behind what `whole` has, its microbatches counted from `first` on.
void append(Schedule& whole, const Schedule& pass, Microbatch first);

}  // namespace counterflow
