#pragma once

#include <vector>

#include "scheduler/ir/program.h"
#include "scheduler/ir/timeline.h"

namespace counterflow {

// What a rank holds over time, given when its instructions ran: kernels allocate when they begin
// and free when they end; what is freed at an instant is usable at that instant. Starts with the
// static memory. O(n log n), O(n) where computes do not overlap.
[[nodiscard]] std::vector<MemorySample> memory_over_time(const Program& program,
                                                         const RankProgram& rank,
                                                         const std::vector<Interval>& times);

}  // namespace counterflow
