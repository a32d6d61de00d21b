#pragma once

#include <chrono>
#include <optional>
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

// Is this the family's map, for the placement's number of stages?
[[nodiscard]] bool takes_map(const Family& family, const Placement& placement);

// The order of every published family that takes this problem's shape and placement, whether or
// not the memory holds it; with a deadline as many as can be made before it, and one in any case,
// those first that split the backward: the others seldom beat them. O(families * ops).
using Deadline = std::chrono::steady_clock::time_point;
[[nodiscard]] std::vector<Schedule> family_schedules(const Problem& problem,
                                                     std::optional<Deadline> deadline = {});

}  // namespace counterflow
