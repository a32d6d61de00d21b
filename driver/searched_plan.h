#pragma once

#include <filesystem>

#include "driver/plan.h"
#include "scheduler/problem/config.h"
#include "scheduler/search/budget.h"
#include "scheduler/search/search.h"

namespace counterflow {

// A plan whose schedule was searched for, and how that went.
struct SearchedPlan {
  Plan plan;
  SearchResult result;
};

// The best schedule found for what the config describes: its placement, costs and limits. Seeds are
// all published families that fit, and what the config names as its schedule: a family, or a .csv
// file whose path starts at `folder` (a warm start). Throws InputError, and InfeasibleError where
// no order fits the memory.
[[nodiscard]] SearchedPlan searched_plan(Config config, const std::filesystem::path& folder,
                                         const SearchBudget& budget);

}  // namespace counterflow
