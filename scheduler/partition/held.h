#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/ir/schedule.h"
#include "scheduler/problem/problem.h"

namespace counterflow {

// The most bytes each rank ever holds in this order, static memory included. [rank] O(ops).
[[nodiscard]] std::vector<std::int64_t> peak_bytes(const Problem& problem,
                                                   const Schedule& schedule);

// The most microbatches of each stage that are ever held on a rank: from the begin of F to the end
// of the gradient work. Of a stage with two replicas the larger. [stage] O(ops).
[[nodiscard]] std::vector<std::int64_t> peak_copies(const Problem& problem,
                                                    const Schedule& schedule);

}  // namespace counterflow
