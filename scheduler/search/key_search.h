#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/search/budget.h"
#include "scheduler/search/decoder.h"
#include "scheduler/search/elite.h"
#include "scheduler/search/random.h"

namespace counterflow {

// Local search by keys: the begins of a good schedule, shaken, are the keys from which the list
// scheduler makes the next one, in either direction of time. What memory and arrival times demand
// the scheduler puts right, so that a step may change many places at once. The begins are the
// earliest its order allows or the latest: those put first what the end waits for.
class KeySearch {
 public:
  KeySearch(Decoder& decoder, std::uint64_t seed);

  // Improves the elite until the meter shows `until` or the best reaches `target`.
  void run(Elite& elite, BudgetMeter& meter, double until, std::int64_t target);

 private:
  // Begins and ends of each op as early as the orders allow, or as late as the makespan does.
  void time(const SearchModel::Orders& orders, std::int64_t makespan, bool late);
  void shake(std::int64_t makespan, bool backwards);

  Decoder& decoder_;
  OrderEvaluator forwards_, backwards_;
  std::vector<std::int64_t> begins_, ends_;  // [op]
  SearchRandom random_;
  std::vector<std::int64_t> keys_;
  std::vector<std::int64_t> shifts_;  // [direction][number] of whole microbatches
};

}  // namespace counterflow
