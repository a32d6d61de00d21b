#pragma once

#include <string>

#include "scheduler/ir/schedule.h"
#include "scheduler/problem/problem.h"

namespace counterflow {

// graph.dot: why a schedule takes as long as it does. Two clusters: everything one microbatch goes
// through, and the critical path, each slot coloured by its rank, each edge labelled with its
// reason where it is not the rank's own order. Long paths are collapsed (runs of slots of one rank
// become one node) and then capped, so that `dot` draws any schedule in seconds. The path counts
// costs and latency, not bandwidth. The schedule must be valid. O(ops).
[[nodiscard]] std::string graph_dot(const Problem& problem, const Schedule& schedule);

}  // namespace counterflow
