#pragma once

#include <string>

#include "scheduler/error.h"
#include "schedules/registry.h"

namespace counterflow {

struct AutoChoice {
  const Family* family = nullptr;
  Schedule schedule;
  std::string note;  // what was chosen, among how many
};

// The published family that is fastest on this problem's placement, within its memory limits; of
// equals the first in the documentation's order. Throws InputError if no family takes this shape
// and InfeasibleError if those that do exceed the memory. O(families * ops).
[[nodiscard]] AutoChoice choose_schedule(const Problem& problem, const SourceLocation& asked_at);

}  // namespace counterflow
