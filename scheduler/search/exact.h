#pragma once

#include <cstdint>

#include "scheduler/ir/schedule.h"
#include "scheduler/problem/problem.h"

namespace counterflow {

// How long an exact solution may be sought. A node costs 20 to 200 us for 50 to 200 ops.
struct ExactBudget {
  std::int64_t nodes = 20'000;
};

struct ExactResult {
  Schedule schedule;  // the best order known; no ranks if none is
  Time makespan{-1};  // of it; -1ns without one
  Time bound{0};      // proven; no order is shorter
  std::int64_t nodes = 0;
  [[nodiscard]] bool optimal() const { return makespan >= Time{0} && makespan == bound; }
};

// Can a problem be solved exactly here? Equal microbatches, no pair cost below the sum of its
// parts, unlimited bandwidth, and few enough ops to be worth a try.
[[nodiscard]] bool is_exactly_solvable(const Problem& problem);

// Branch and bound over the op that each rank runs next, in order of time (Giffler and Thompson),
// with the windows of all other ops narrowed at every node and states remembered that an explored
// one dominates. Starts from `incumbent` (an order of this problem within its limits; may be null)
// and never returns a longer one. Given enough nodes the result is optimal; out of nodes it is the
// best order found and the best bound proven. Depends on the budget alone, not on time.
//
// The problem must be exactly solvable; of any other the incumbent comes back with a plain bound.
[[nodiscard]] ExactResult solve_exactly(const Problem& problem, const Schedule* incumbent,
                                        const ExactBudget& budget);

}  // namespace counterflow
