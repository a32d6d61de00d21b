#pragma once

#include "scheduler/ir/program.h"
#include "scheduler/ir/schedule.h"

namespace counterflow {

// The compute of a program as the schedule it is: each rank's F, B, I and W in issue order.
// O(size).
[[nodiscard]] Schedule compute_of(const Program& program);

}  // namespace counterflow
