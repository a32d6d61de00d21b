#pragma once

#include <cstdint>

#include "scheduler/bounds/lines.h"
#include "scheduler/problem/problem.h"

namespace counterflow {

// What a rank's memory allows: a stage-microbatch occupies its activation for at least as long as
// it takes to come back as a gradient through an empty pipeline, and all of them together no more
// than the limit times the time there is. Decisive where limits are tight. Holds for any order and
// any microbatch factors; 0 without limits. O(stages + edges), with factors times microbatches.
[[nodiscard]] std::int64_t area_bound(const Problem& problem, const Lines& lines,
                                      const Windows& windows);

}  // namespace counterflow
