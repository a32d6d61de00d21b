#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "scheduler/ir/schedule.h"
#include "scheduler/problem/problem.h"
#include "scheduler/search/budget.h"

namespace counterflow {

// What to keep small in place of the makespan: say, its expectation under jitter. Called for a few
// dozen of the best orders found, and for each seed.
using SearchObjective = std::function<Time(const Schedule&)>;

struct SearchResult {
  Schedule schedule;    // faultless, within the memory limits
  Time makespan{0};     // of it, as the Evaluator finds it, whatever the goal
  Time lower_bound{0};  // of the makespan, proven; it is optimal where they meet
  // The argument that proves it: a LowerBound's.
  std::string_view bound_argument;
  std::int64_t iterations = 0;
  int searches = 1;  // so many were made, each with all the iterations of the budget
  // Where the goal is the longest span of a rank: at most so long, and proven not below.
  Time span{0};
  Time span_bound{0};
  Time best_makespan{0};  // of any order found: what an objective of its own costs
  Schedule fastest;       // that order; only with an objective
  Time objective{0};      // of `schedule`; only with one
  // Which step found it: "seed NAME", "list scheduling", "replay", "annealing", "keys", "exact".
  std::string found_by;

  [[nodiscard]] bool is_optimal() const { return makespan == lower_bound; }
};

// The best order found for these costs, this placement and these limits, whatever the Problem says
// of them: several stages a rank, two directions, stage graphs, unequal microbatches, fused pairs,
// frozen stages, limited links. Never longer than any of the seeds that is faultless. Anytime: more
// budget never makes it worse for the same seed of the random numbers, but for where the phases
// end. Ends early where the makespan meets the bound.
//
// With an `objective`, of the best orders by makespan and the seeds the one that is best by it: so
// never worse by it than a faultless seed, or than the fastest order found. With a budget in time
// as many of them as that allows are judged, and the fastest order in any case.
//
// Throws InfeasibleError, naming the rank and what it needs, where no order fits the memory.
[[nodiscard]] SearchResult search(const Problem& problem, std::span<const Schedule> seeds,
                                  const SearchBudget& budget = {},
                                  const SearchObjective& objective = {});

}  // namespace counterflow
