#include "scheduler/search/move_estimate.h"

#include <algorithm>
#include <span>

namespace counterflow {

MoveEstimate::MoveEstimate(const SearchModel& model)
    : model_(model), exists_(!model.has_pairs && !model.limited_links) {
  if (!exists_) return;
  lane_of_.resize(model.ops());
  for (OpId op = 0; op < lane_of_.size(); ++op) lane_of_[op] = model.lane_of(op);
  tails_.resize(model.ops());
}

void MoveEstimate::take(const OrderEvaluator& evaluator) {
  begins_ = evaluator.begins();
  ends_ = evaluator.ends();
  std::fill(tails_.begin(), tails_.end(), 0);
  rank_ways_ = model_.rank_tail;
  const std::span<const OpId> sequence = evaluator.sequence();
  for (std::size_t i = sequence.size(); i-- > 0;) {
    const OpId op = sequence[i];
    const LaneId lane = lane_of_[op];
    std::int64_t& next_on_rank = rank_ways_[static_cast<std::size_t>(model_.lanes[lane].rank)];
    tails_[op] = std::max(tails_[op], next_on_rank);
    const std::int64_t way = tails_[op] + ends_[op] - begins_[op];
    next_on_rank = way;
    const std::uint32_t number = op - model_.id(lane, 0);
    for (const SearchModel::Edge& edge : model_.inputs(lane)) {
      std::int64_t& tail = tails_[model_.id(edge.lane, number)];
      tail = std::max(tail, way + edge.lag);
    }
  }
}

// The latest input from other ranks; on its own rank whatever it waits for stands before it.
std::int64_t MoveEstimate::arrival(OpId op) const {
  const LaneId lane = lane_of_[op];
  const std::uint32_t number = op - model_.id(lane, 0);
  std::int64_t latest = 0;
  for (const SearchModel::Edge& edge : model_.inputs(lane)) {
    if (model_.lanes[edge.lane].rank == model_.lanes[lane].rank) continue;
    latest = std::max(latest, ends_[model_.id(edge.lane, number)] + edge.lag);
  }
  return latest;
}

// From its end, over other ranks, to the end of all.
std::int64_t MoveEstimate::way_out(OpId op) const {
  const LaneId lane = lane_of_[op];
  const std::uint32_t number = op - model_.id(lane, 0);
  std::int64_t longest = 0;
  for (const SearchModel::Edge& edge : model_.outputs(lane)) {
    if (model_.lanes[edge.lane].rank == model_.lanes[lane].rank) continue;
    const OpId next = model_.id(edge.lane, number);
    longest = std::max(longest, edge.lag + ends_[next] - begins_[next] + tails_[next]);
  }
  return longest;
}

std::int64_t MoveEstimate::after(const std::vector<OpId>& order, std::uint32_t first,
                                 std::uint32_t middle, std::uint32_t last) const {
  const auto rank = static_cast<std::size_t>(model_.lanes[lane_of_[order[first]]].rank);
  const std::uint32_t size = last - first;
  // The op at place i of the new order.
  const auto moved = [&](std::uint32_t i) {
    const std::uint32_t behind = last - middle;
    return order[i < behind ? middle + i : first + i - behind];
  };
  ends_after_.resize(size);
  std::int64_t free = first > 0 ? ends_[order[first - 1]] : model_.rank_head[rank];
  for (std::uint32_t i = 0; i < size; ++i) {
    const OpId op = moved(i);
    free = std::max(free, arrival(op)) + ends_[op] - begins_[op];
    ends_after_[i] = free;
  }
  std::int64_t way = model_.rank_tail[rank];
  if (last < order.size()) {
    const OpId next = order[last];
    way = tails_[next] + ends_[next] - begins_[next];
  }
  std::int64_t longest = 0;
  for (std::uint32_t i = size; i-- > 0;) {
    const OpId op = moved(i);
    way = std::max(way, way_out(op));
    longest = std::max(longest, ends_after_[i] + way);
    way += ends_[op] - begins_[op];
  }
  return longest;
}

}  // namespace counterflow
