#include "scheduler/search/reverse.h"

#include <algorithm>
#include <utility>

namespace counterflow {

SearchModel::Orders reversed(const SearchModel& model, SearchModel::Orders orders) {
  for (auto& order : orders) {
    std::ranges::reverse(order);
    for (SearchModel::OpId& entry : order) {
      const SearchModel::OpId flag = entry & SearchModel::kFused;
      const SearchModel::LaneId lane = model.lane_of(entry ^ flag);
      const std::uint32_t last = model.lanes[lane].count - 1;
      entry = model.id(lane, last - model.number_of(entry ^ flag)) | flag;
    }
    // The first of a fused pair is marked, and the first is now the second.
    for (std::size_t i = 1; i < order.size(); ++i) {
      if ((order[i] & SearchModel::kFused) == 0) continue;
      std::swap(order[i - 1], order[i]);
    }
  }
  return orders;
}

}  // namespace counterflow
