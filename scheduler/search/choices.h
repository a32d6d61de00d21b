#pragma once

#include <functional>
#include <span>
#include <vector>

#include "scheduler/problem/problem.h"
#include "scheduler/search/choice.h"
#include "scheduler/search/search.h"

namespace counterflow {

// A schedule, and what each stage keeps between F and the backward for it.
struct ChosenSearch {
  Problem problem;      // with the choice made
  SearchResult result;  // its lower bound holds whatever the choice
};

// The best order found together with the best way found for each stage to keep its activations, of
// those the problem offers (`keeping_options`). Half of the budget goes to the problem as it is
// with no way taken, if that fits, so the result is never longer than what is found there; then
// ways are tried with a short search each, ranks first, stages one by one after; the best gets what
// is left. Where nothing is offered this is `search`. Seeds may be of any choice.
//
// Throws InfeasibleError where no order fits, whatever the stages keep.
[[nodiscard]] ChosenSearch search_choices(const Problem& problem, std::span<const Schedule> seeds,
                                          const SearchBudget& budget = {});

// A search for some goal on a problem whose choice is made, as `search` with an objective: the
// makespan apart from the objective, and the `fastest` order beside.
using GoalSearch =
    std::function<SearchResult(const Problem&, std::span<const Schedule>, const SearchBudget&)>;

// The order best at another goal than the makespan: `search_on` is asked under the choice that
// `search_choices` finds for the makespan, and under everything kept if that fits; the better is
// taken. A budget in iterations counts for each of the three searches, one in time is shared.
// Where nothing is offered this is `search_on`. Throws as `search_choices`, and what that throws.
[[nodiscard]] ChosenSearch search_choices_by(const Problem& problem,
                                             std::span<const Schedule> seeds,
                                             const SearchBudget& budget,
                                             const GoalSearch& search_on);

// Seeds of any choice as orders of a problem with its choice made: as they are where they are
// faultless, else with what moves activations right beside its F and backward. O(ops).
[[nodiscard]] std::vector<Schedule> seeds_for(const Problem& problem,
                                              std::span<const Schedule> seeds);

}  // namespace counterflow
