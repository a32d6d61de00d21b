#pragma once

#include <filesystem>
#include <optional>

#include "driver/plan.h"
#include "driver/robust_search.h"
#include "scheduler/ir/trials.h"
#include "scheduler/problem/config.h"
#include "scheduler/search/budget.h"
#include "scheduler/search/search.h"

namespace counterflow {

// A plan whose schedule was searched for, and how that went.
struct SearchedPlan {
  Plan plan;
  SearchResult result;
  std::optional<Robustness> robustness;  // where the search was for an order that stands something
  Time took{0};  // by the clock: the plan, the seeds and the search, bounds included
};

// The best schedule found for what the config describes: its placement, costs and limits. Seeds are
// all published families that fit, and what the config names as its schedule: a family, or a .csv
// file whose path starts at `folder` (a warm start). A budget in time includes all of that: half of
// it at most goes into the seeds. Throws InputError, and InfeasibleError where
// no order fits the memory.
// With a `robust` goal the order that is best at that (see robust_search).
[[nodiscard]] SearchedPlan searched_plan(Config config, const std::filesystem::path& folder,
                                         const SearchBudget& budget,
                                         const std::optional<RobustGoal>& robust = {});

}  // namespace counterflow
