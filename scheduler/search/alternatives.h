#pragma once

#include <span>
#include <string>

#include "scheduler/search/search.h"

namespace counterflow {

// A problem of the same shape and limits whose costs differ, where orders may be found that an
// objective prefers.
struct Alternative {
  Problem problem;
  std::string what;  // its costs, in two or three words
};

// The best order by `objective` of a search on the problem and one on each alternative, each with
// the whole budget in iterations, or a share of the time; alternatives for which no time is left
// take no part. The makespan is that on the problem itself; bound, `fastest` and `best_makespan`
// are those of the search on it. So the result is never worse by the objective than any faultless
// seed that was judged, or than the fastest order found. The searches run on so many threads; with
// a budget in iterations the result is the same for any number. The objective must bear calls from
// all of them. Throws what the search on the problem itself throws.
[[nodiscard]] SearchResult search_alternatives(const Problem& problem,
                                               std::span<const Alternative> alternatives,
                                               std::span<const Schedule> seeds,
                                               const SearchBudget& budget,
                                               const SearchObjective& objective, int threads);

}  // namespace counterflow
