#pragma once

#include "scheduler/ir/schedule.h"
#include "scheduler/problem/problem.h"

namespace counterflow {

// The order with what the problem does not need left out and, if it asks for split backwards, every
// B outside a pair cut into I and W. Without a weight gradient B becomes I; without a gradient to
// send on it goes too. What is left of a pair stands alone. The order of the rest is kept. O(ops).
[[nodiscard]] Schedule adapt(Schedule schedule, const Problem& problem);

}  // namespace counterflow
