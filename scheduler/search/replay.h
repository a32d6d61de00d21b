#pragma once

#include <functional>
#include <vector>

#include "scheduler/problem/problem.h"
#include "scheduler/search/budget.h"
#include "scheduler/search/priorities.h"

namespace counterflow {

// The problem with fewer microbatches: the first ones of each direction.
[[nodiscard]] Problem with_microbatches(const Problem& problem, int microbatches);

// With how many microbatches rules are ranked: enough for a steady state. As many as there are
// where that saves little.
[[nodiscard]] int ranking_microbatches(const Problem& problem);

// Tries rules on the smaller problem until the meter shows `until`, and puts the best first; those
// not tried are left out. Rules that make the same schedule are ranked once. Calls `better` with
// each rule that is the best so far; stops where it returns true.
[[nodiscard]] std::vector<PriorityRule> ranked(
    const Problem& smaller, bool for_span, const std::vector<PriorityRule>& rules,
    BudgetMeter& meter, double until, const std::function<bool(const PriorityRule&)>& better);

}  // namespace counterflow
