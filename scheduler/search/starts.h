#pragma once

#include <functional>

#include "scheduler/search/search.h"

namespace counterflow {

// One search with a budget of its own; called from several threads at a time.
using SearchOnce = std::function<SearchResult(const SearchBudget&)>;

// Several searches at a time, each with random numbers of its own and all of the budget: the best
// order, the highest bound, what all of them tried. Of equal results the first counts, so that with
// a budget in iterations the result is the same however many cores there are. With a budget in time
// all end once one has proven its own optimal. Throws what the first threw where none found
// an order.
[[nodiscard]] SearchResult search_from(int starts, const SearchBudget& budget,
                                       const SearchOnce& search_once);

}  // namespace counterflow
