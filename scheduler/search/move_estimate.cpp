#include "scheduler/search/move_estimate.h"

#include <algorithm>

namespace counterflow {

// The latest input from other ranks; on its own rank whatever it waits for stands before it.
std::int64_t MoveEstimate::arrival(OpId op) const {
  const LaneId lane = model_.lane_of(op);
  const std::uint32_t number = op - model_.id(lane, 0);
  std::int64_t latest = 0;
  for (const SearchModel::Edge& edge : model_.inputs(lane)) {
    if (model_.lanes[edge.lane].rank == model_.lanes[lane].rank) continue;
    latest = std::max(latest, times_.end(model_.id(edge.lane, number)) + edge.lag);
  }
  return latest;
}

// From its end, over other ranks, to the end of all.
std::int64_t MoveEstimate::way_out(OpId op) const {
  const LaneId lane = model_.lane_of(op);
  const std::uint32_t number = op - model_.id(lane, 0);
  std::int64_t longest = 0;
  for (const SearchModel::Edge& edge : model_.outputs(lane)) {
    if (model_.lanes[edge.lane].rank == model_.lanes[lane].rank) continue;
    longest = std::max(longest, edge.lag + times_.way_out(model_.id(edge.lane, number)));
  }
  return longest;
}

std::int64_t MoveEstimate::after(const std::vector<OpId>& order, std::uint32_t first,
                                 std::uint32_t middle, std::uint32_t last) const {
  const auto rank = static_cast<std::size_t>(model_.lanes[model_.lane_of(order[first])].rank);
  const std::uint32_t size = last - first;
  // The op at place i of the new order.
  const auto moved = [&](std::uint32_t i) {
    const std::uint32_t behind = last - middle;
    return order[i < behind ? middle + i : first + i - behind];
  };
  ends_after_.resize(size);
  std::int64_t free = first > 0 ? times_.end(order[first - 1]) : model_.rank_head[rank];
  for (std::uint32_t i = 0; i < size; ++i) {
    const OpId op = moved(i);
    free = std::max(free, arrival(op)) + duration(op);
    ends_after_[i] = free;
  }
  std::int64_t way = model_.rank_tail[rank];
  if (last < order.size()) way = times_.way_out(order[last]);
  std::int64_t longest = 0;
  for (std::uint32_t i = size; i-- > 0;) {
    const OpId op = moved(i);
    way = std::max(way, way_out(op));
    longest = std::max(longest, ends_after_[i] + way);
    way += duration(op);
  }
  return longest;
}

}  // namespace counterflow
