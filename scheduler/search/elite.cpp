#include "scheduler/search/elite.h"

#include <algorithm>

namespace counterflow {

void Elite::add(std::int64_t makespan, const SearchModel::Orders& orders) {
  if (makespan >= cutoff()) return;
  auto at = std::ranges::lower_bound(members_, makespan, {}, &Member::makespan);
  for (; at != members_.end() && at->makespan == makespan; ++at) {
    if (at->orders == orders) return;
  }
  members_.insert(at, {makespan, orders});
  if (members_.size() > capacity_) members_.pop_back();
}

}  // namespace counterflow
