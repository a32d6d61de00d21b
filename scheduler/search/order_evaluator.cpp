#include "scheduler/search/order_evaluator.h"

#include <algorithm>

namespace counterflow {
namespace {

constexpr SearchModel::OpId kNoOp = std::numeric_limits<SearchModel::OpId>::max();

}  // namespace

OrderEvaluator::OrderEvaluator(const SearchModel& model)
    : model_(model),
      lane_of_(model.ops()),
      arrivals_(model.ops()),
      got_(model.ops()),
      begins_(model.ops()),
      ends_(model.ops()),
      link_free_(model.limited_links ? model.ranks() * model.ranks() : 0),
      clocks_(model.ranks()),
      positions_(model.ranks()),
      waits_for_(model.ranks()),
      sequence_(model.ops()) {
  for (OpId op = 0; op < lane_of_.size(); ++op) lane_of_[op] = model.lane_of(op);
}

std::int64_t OrderEvaluator::evaluate(const SearchModel::Orders& orders, std::int64_t cutoff) {
  cutoff_ = cutoff;
  hopeless_ = false;
  std::fill(arrivals_.begin(), arrivals_.end(), 0);
  std::fill(got_.begin(), got_.end(), std::uint8_t{0});
  std::fill(link_free_.begin(), link_free_.end(), 0);
  clocks_ = model_.rank_head;
  std::fill(positions_.begin(), positions_.end(), 0);
  std::fill(waits_for_.begin(), waits_for_.end(), kNoOp);
  runnable_.clear();
  done_ = 0;
  for (std::size_t rank = orders.size(); rank-- > 0;) {
    runnable_.push_back(static_cast<std::uint32_t>(rank));
  }
  while (!runnable_.empty() && !hopeless_) {
    const std::uint32_t rank = runnable_.back();
    runnable_.pop_back();
    advance(orders, rank);
  }
  std::int64_t makespan = 0;
  for (std::size_t rank = 0; rank < orders.size(); ++rank) {
    work_ += positions_[rank];
    if (positions_[rank] != orders[rank].size()) return -1;
    makespan = std::max(makespan, clocks_[rank] + model_.rank_tail[rank]);
  }
  return hopeless_ ? -1 : makespan;
}

void OrderEvaluator::advance(const SearchModel::Orders& orders, std::uint32_t rank) {
  const std::vector<OpId>& order = orders[rank];
  while (positions_[rank] < order.size()) {
    const OpId op = order[positions_[rank]] & ~SearchModel::kFused;
    if (order[positions_[rank]] != op) {
      if (!take_pair(op, order[positions_[rank] + 1], rank)) return;
      positions_[rank] += 2;
      continue;
    }
    const LaneId lane = lane_of_[op];
    if (!is_ready(lane, op)) {
      waits_for_[rank] = op;
      return;
    }
    const std::int64_t begin = std::max(clocks_[rank], arrivals_[op]);
    const std::int64_t end = begin + model_.duration(lane, op);
    begins_[op] = begin;
    ends_[op] = end;
    clocks_[rank] = end;
    ++positions_[rank];
    sequence_[done_++] = op;
    if (end + model_.lanes[lane].tail >= cutoff_) {
      hopeless_ = true;
      return;
    }
    send(lane, op, end);
  }
}

bool OrderEvaluator::take_pair(OpId f, OpId g, std::uint32_t rank) {
  for (const OpId op : {f, g}) {
    if (!is_ready(lane_of_[op], op)) {
      waits_for_[rank] = op;
      return false;
    }
  }
  const std::int64_t begin = std::max({clocks_[rank], arrivals_[f], arrivals_[g]});
  const std::int64_t duration = model_.pair_duration(lane_of_[f], f, lane_of_[g], g);
  if (duration < 0) {  // no longer a pair worth having
    hopeless_ = true;
    return false;
  }
  const std::int64_t end = begin + duration;
  clocks_[rank] = end;
  if (const LaneId w = model_.weight_of(lane_of_[g]); w != SearchModel::kNoLane) {
    const OpId weight = model_.id(w, model_.number_of(g));
    begins_[weight] = begin;
    ends_[weight] = end;
  }
  for (const OpId op : {f, g}) {
    begins_[op] = begin;
    ends_[op] = end;
    send(lane_of_[op], op, end);
  }
  return true;
}

void OrderEvaluator::send(LaneId from, OpId op, std::int64_t end) {
  const OpId number = op - model_.id(from, 0);
  for (const SearchModel::Edge& edge : model_.outputs(from)) {
    const OpId target = model_.id(edge.lane, number);
    const auto rank = static_cast<std::size_t>(model_.lanes[edge.lane].rank);
    std::int64_t arrival = end + edge.lag;
    if (edge.occupancy > 0) {
      const auto source = static_cast<std::size_t>(model_.lanes[from].rank);
      std::int64_t& free = link_free_[source * model_.ranks() + rank];
      free = std::max(free, end) + edge.occupancy;
      arrival = free + edge.lag - edge.occupancy;
    }
    arrivals_[target] = std::max(arrivals_[target], arrival);
    ++got_[target];
    if (waits_for_[rank] == target && is_ready(edge.lane, target)) {
      waits_for_[rank] = kNoOp;
      runnable_.push_back(static_cast<std::uint32_t>(rank));
    }
  }
}

}  // namespace counterflow
