#include "scheduler/search/moves.h"

#include <algorithm>
#include <cmath>

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

OrderAnnealing::OrderAnnealing(const SearchModel& model, std::uint64_t seed)
    : model_(model), evaluator_(model), memory_(model), random_(seed), position_of_(model.ops()) {}

void OrderAnnealing::start(SearchModel::Orders orders, std::int64_t makespan) {
  orders_ = std::move(orders);
  best_ = orders_;
  makespan_ = best_makespan_ = makespan;
  evaluator_.evaluate(orders_);
  trace();
}

// A critical path, chosen at random where there are several. Positions are found on the way.
void OrderAnnealing::trace() {
  path_.clear();
  std::uint32_t rank = 0;
  OpId last = 0;
  std::uint32_t ties = 0;
  for (std::uint32_t r = 0; r < orders_.size(); ++r) {
    if (orders_[r].empty()) continue;
    for (std::uint32_t i = 0; i < orders_[r].size(); ++i) position_of_[orders_[r][i]] = i;
    const OpId op = orders_[r].back();
    if (evaluator_.ends()[op] != makespan_) continue;
    if (random_.below(++ties) == 0) {
      rank = r;
      last = op;
    }
  }
  for (;;) {
    path_.push_back({rank, position_of_[last]});
    const std::int64_t begin = evaluator_.begins()[last];
    if (begin == 0 && position_of_[last] == 0) return;
    const SearchModel::LaneId lane = model_.lane_of(last);
    const std::uint32_t number = model_.number_of(last);
    ties = 0;
    OpId next = last;
    std::uint32_t next_rank = rank;
    if (position_of_[last] > 0) {
      const OpId before = orders_[rank][position_of_[last] - 1];
      if (evaluator_.ends()[before] == begin) {
        ties = 1;
        next = before;
      }
    }
    for (const SearchModel::Edge& edge : model_.inputs(lane)) {
      const OpId input = model_.id(edge.lane, number);
      if (evaluator_.ends()[input] + edge.lag != begin) continue;
      if (random_.below(++ties) == 0) {
        next = input;
        next_rank = static_cast<std::uint32_t>(model_.lanes[edge.lane].rank);
      }
    }
    if (next == last) return;
    last = next;
    rank = next_rank;
  }
}

// Would an op at `from` pass an op of its own stage copy and microbatch, or of its own lane?
bool OrderAnnealing::is_bound(const std::vector<OpId>& order, std::uint32_t from,
                              std::uint32_t to) const {
  const OpId op = order[from];
  const SearchModel::Lane& lane = model_.lanes[model_.lane_of(op)];
  const auto bound = [&](OpId other) {
    const SearchModel::LaneId its = model_.lane_of(other);
    if (its == model_.lane_of(op)) return true;
    return model_.number_of(other) == model_.number_of(op) &&
           model_.lanes[its].stage == lane.stage && model_.lanes[its].replica == lane.replica;
  };
  if (to < from) {
    for (std::uint32_t i = to; i < from; ++i) {
      if (bound(order[i])) return true;
    }
  } else {
    for (std::uint32_t i = from + 1; i <= to; ++i) {
      if (bound(order[i])) return true;
    }
  }
  return false;
}

bool OrderAnnealing::propose(std::uint32_t& rank, std::uint32_t& from, std::uint32_t& to) {
  const std::size_t pick = random_.below(static_cast<std::uint32_t>(path_.size()));
  const Place place = path_[pick];
  rank = place.rank;
  from = place.position;
  const auto size = static_cast<std::uint32_t>(orders_[rank].size());
  std::uint32_t distance = 1;
  while (distance < size && random_.below(2) == 0) ++distance;
  if (random_.below(2) == 0) {
    if (from < distance) return false;
    to = from - distance;
  } else {
    if (from + distance >= size) return false;
    to = from + distance;
  }
  // Half of the time the other one moves over this one.
  if (random_.below(2) == 0) std::swap(from, to);
  return !is_bound(orders_[rank], from, to);
}

namespace {

void move_entry(std::vector<SearchModel::OpId>& order, std::uint32_t from, std::uint32_t to) {
  const auto at = [&](std::uint32_t i) { return order.begin() + static_cast<std::ptrdiff_t>(i); };
  if (from < to) {
    std::rotate(at(from), at(from + 1), at(to + 1));
  } else {
    std::rotate(at(to), at(from), at(from + 1));
  }
}

}  // namespace

void OrderAnnealing::run(std::int64_t moves, double temperature) {
  for (std::int64_t i = 0; i < moves; ++i) {
    std::uint32_t rank = 0;
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    if (!propose(rank, from, to)) continue;
    move_entry(orders_[rank], from, to);
    const double worse = -std::log(random_.unit() + 1e-12) * temperature;
    const std::int64_t limit = makespan_ + static_cast<std::int64_t>(worse) + 1;
    std::int64_t makespan = -1;
    if (memory_.fits(rank, orders_[rank])) makespan = evaluator_.evaluate(orders_, limit);
    if (makespan < 0) {
      move_entry(orders_[rank], to, from);
      continue;
    }
    makespan_ = makespan;
    if (makespan < best_makespan_) {
      best_makespan_ = makespan;
      best_ = orders_;
    }
    trace();
  }
}

}  // namespace counterflow
