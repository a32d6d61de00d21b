#include "scheduler/search/order_memory.h"

#include <algorithm>
#include <cstddef>

namespace counterflow {

OrderMemory::OrderMemory(const SearchModel& model) : model_(model) {
  for (int r = 0; r < SearchModel::kResources; ++r) {
    const auto resource = static_cast<std::size_t>(r);
    const bool limited = std::ranges::any_of(model.limits, [&](const SearchModel::Amount& limit) {
      return limit[resource] < SearchModel::kUnlimited;
    });
    if (!limited) continue;
    std::vector<Change>& changes = changes_[resource];
    changes.resize(model.ops());
    for (SearchModel::LaneId lane = 0; lane < model.lanes.size(); ++lane) {
      const SearchModel::LaneId w = model.weight_of(lane);
      for (std::uint32_t number = 0; number < model.lanes[lane].count; ++number) {
        const SearchModel::OpId op = model.id(lane, number);
        const std::int64_t freed = model.freed(lane, op, r);
        const std::int64_t with_weight =
            w == SearchModel::kNoLane ? 0 : model.freed(w, model.id(w, number), r);
        changes[op] = {model.allocated(lane, op, r), freed, freed + with_weight};
      }
    }
  }
}

bool OrderMemory::fits(const SearchModel::Orders& orders) const {
  for (std::size_t rank = 0; rank < orders.size(); ++rank) {
    if (!fits(rank, orders[rank])) return false;
  }
  return true;
}

bool OrderMemory::fits(std::size_t rank, const std::vector<SearchModel::OpId>& order) const {
  for (std::size_t r = 0; r < SearchModel::kResources; ++r) {
    const std::vector<Change>& changes = changes_[r];
    if (changes.empty()) continue;
    const std::int64_t limit = model_.limits[rank][r];
    std::int64_t used = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const Change* change = &changes[order[i] & ~SearchModel::kFused];
      used += change->allocated;
      std::int64_t freed = change->freed;
      if ((order[i] & SearchModel::kFused) != 0) {
        change = &changes[order[++i]];
        used += change->allocated;
        freed += change->freed_in_pair;
      }
      if (used > limit) return false;
      used -= freed;
    }
  }
  return true;
}

}  // namespace counterflow
