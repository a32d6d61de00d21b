#include "scheduler/search/reverse.h"

#include <algorithm>

namespace counterflow {

SearchModel::Orders reversed(const SearchModel& model, SearchModel::Orders orders) {
  for (auto& order : orders) {
    std::ranges::reverse(order);
    for (SearchModel::OpId& op : order) {
      const SearchModel::LaneId lane = model.lane_of(op);
      op = model.id(lane, model.lanes[lane].count - 1 - model.number_of(op));
    }
  }
  return orders;
}

}  // namespace counterflow
