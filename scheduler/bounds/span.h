#pragma once

#include "scheduler/ir/units.h"
#include "scheduler/problem/problem.h"

namespace counterflow {

// No order on this placement within these limits has a shorter longest span, from the first begin
// to the last end of a rank: the largest load of a rank, with what it must idle where its one stage
// is part of a chain of stages that are all trained, equal microbatches flow through it and no pair
// saves time. Why it holds is said in the implementation. 0ns where pairs save time.
// O(stages * microbatches).
[[nodiscard]] Time span_bound(const Problem& problem);

}  // namespace counterflow
