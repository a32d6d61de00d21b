#pragma once

#include <string>
#include <vector>

#include "schedules/registry.h"

namespace counterflow {

struct AutoChoice {
  const Family* family = nullptr;  // nullptr: found by search
  Schedule schedule;
  std::vector<Keeping> keeping;  // what the stages keep for it, as Problem::keeping
  std::string note;              // what was chosen, among how many
};

// The published family that is fastest on this problem's placement, within its memory limits; of
// equals the first in the documentation's order. Where none fits, what a short search finds; its
// budget is in iterations, so that the choice depends on the problem alone. Throws InfeasibleError
// where no order fits the memory. O(families * ops), and the search.
[[nodiscard]] AutoChoice choose_schedule(const Problem& problem);

// The order of every published family that takes this problem's shape and placement, whether or
// not the memory holds it. O(families * ops).
[[nodiscard]] std::vector<Schedule> family_schedules(const Problem& problem);

}  // namespace counterflow
