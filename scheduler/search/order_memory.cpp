#include "scheduler/search/order_memory.h"

namespace counterflow {

OrderMemory::OrderMemory(const SearchModel& model) : model_(model) {}

bool OrderMemory::fits(const SearchModel::Orders& orders) const {
  for (std::size_t rank = 0; rank < orders.size(); ++rank) {
    if (!fits(rank, orders[rank])) return false;
  }
  return true;
}

bool OrderMemory::fits(std::size_t rank, const std::vector<SearchModel::OpId>& order) const {
  if (!model_.has_limits) return true;
  for (int r = 0; r < SearchModel::kResources; ++r) {
    const std::int64_t limit = model_.limits[rank][static_cast<std::size_t>(r)];
    if (limit >= SearchModel::kUnlimited) continue;
    std::int64_t used = 0;
    std::int64_t freed = 0;
    bool in_pair = false;
    for (const SearchModel::OpId entry : order) {
      const SearchModel::OpId op = entry & ~SearchModel::kFused;
      const SearchModel::LaneId lane = model_.lane_of(op);
      used += model_.allocated(lane, op, r);
      if (used > limit) return false;
      freed += model_.freed(lane, op, r);
      if (in_pair) {
        if (const auto w = model_.weight_of(lane); w != SearchModel::kNoLane) {
          freed += model_.freed(w, model_.id(w, model_.number_of(op)), r);
        }
      }
      in_pair = entry != op;
      if (in_pair) continue;  // freed when the whole pair ends
      used -= freed;
      freed = 0;
    }
  }
  return true;
}

}  // namespace counterflow
