#pragma once

#include "scheduler/ir/units.h"
#include "scheduler/problem/problem.h"

namespace counterflow {

// The closed bounds of the zero-bubble literature, extended to stage graphs, several stages a rank
// and pair costs: for each rank the way in before its first op, its load, and the way out after its
// last one; and the way of one microbatch through everything. Holds for every problem, whatever an
// order does with memory and however it fuses pairs: a rank's load is bounded by its cheapest
// pairing. Phases follow one another on each rank. Why it holds is said in the implementation.
// O(ranks + stages * microbatches + pairs on a rank).
[[nodiscard]] Time closed_bound(const Problem& problem);

}  // namespace counterflow
