#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "scheduler/ir/schedule.h"
#include "scheduler/ir/trials.h"
#include "scheduler/problem/keeping.h"
#include "scheduler/problem/scenario.h"
#include "scheduler/search/search.h"

namespace counterflow {

struct Plan;

// What an order has to stand beside its costs, and what of its makespans is to be small.
struct RobustGoal {
  bool p95 = false;  // else the mean
  Scenario scenario;
  std::string scenario_name;          // for the report; empty: there is none
  int trials = 0;                     // 0: as many as suit the size; 1 where nothing is drawn
  std::optional<std::uint64_t> seed;  // of the draws; none: the config's
  int threads = 1;                    // the same result for any number
};

struct RobustSearch {
  SearchResult result;
  std::vector<Keeping> keeping;  // what the stages keep for it, as Problem::keeping
  Robustness robustness;
};

// The order that is best at the goal under the config's jitter and the scenario, all orders tried
// on the same draws. Beside a search on the plan's problem, whose best order is the `fastest` that
// the robustness compares with, it searches on the costs to be expected, and with slack of 1, 2 and
// 4 standard deviations between ranks. Where stages may recompute or offload see search_choices_by.
// Throws InputError for a scenario in which a rank fails, and
// InfeasibleError where no order fits the memory or none comes to its end.
[[nodiscard]] RobustSearch robust_search(const Plan& plan, std::span<const Schedule> seeds,
                                         const SearchBudget& budget, const RobustGoal& goal);

}  // namespace counterflow
