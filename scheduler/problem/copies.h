#pragma once

#include "scheduler/ir/schedule.h"
#include "scheduler/problem/problem.h"

// Data parallelism: the same pipeline several times, side by side, each copy with microbatches of
// its own, the gradients added up over all. A schedule is made for one pipeline; what is lowered,
// simulated and run is all of them.
namespace counterflow {

// How many pipelines there are side by side; 1 without an optimizer.
[[nodiscard]] inline int data_parallel(const Problem& one) {
  return one.optimizer ? one.optimizer->data_parallel : 1;
}

// The problem of all copies, from that of one pipeline: Optimizer::data_parallel times its ranks
// and its microbatches. Costs, limits and links within a copy are those of the one; a link between
// two copies has the latency that its ends have in one pipeline, between the copies of a rank the
// longest there is. A problem without data parallelism stays as it is. O(copies * size).
[[nodiscard]] Problem in_copies(Problem one);

// An order of one pipeline in every copy of it. O(copies * slots).
[[nodiscard]] Schedule in_copies(const Problem& one, Schedule schedule);

}  // namespace counterflow
