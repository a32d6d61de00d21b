#pragma once

#include "scheduler/problem/problem.h"

namespace counterflow {

// A makespan that no order on this placement can beat, whatever it does with memory and however it
// fuses pairs: for each rank the way in before its first op, its load, and the way out after its
// last one; and the way of one microbatch through everything. Where split_backward is `full` the
// backward is one op, else it may be split. O(ranks + stages * microbatches + pairs on a rank).
//
// Source: the closed bounds of the zero-bubble literature, extended to stage graphs, several stages
// a rank and pair costs. Why it holds is said in the implementation.
[[nodiscard]] Time lower_bound(const Problem& problem);

}  // namespace counterflow
