#pragma once

#include <filesystem>

#include "report/frontier.h"
#include "scheduler/problem/config.h"
#include "scheduler/search/budget.h"

namespace counterflow {

// What each memory limit buys: searches for `points` limits, the same on every rank, from the least
// that any order needs to what the best order without a limit holds. In bytes where the config
// gives the stages activations, else in activations; its own limits are not used. Each search
// starts from what the one before found, so that more memory never makes it slower. `budget` is for
// each point. Throws InputError as searched_plan does.
[[nodiscard]] Frontier memory_frontier(Config config, const std::filesystem::path& folder,
                                       const SearchBudget& budget, int points);

}  // namespace counterflow
