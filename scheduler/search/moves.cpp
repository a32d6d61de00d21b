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
    : model_(model),
      evaluator_(model),
      memory_(model),
      random_(seed),
      position_of_(model.ops()),
      copy_of_(model.lanes.size()) {
  for (SearchModel::LaneId lane = 0; lane < copy_of_.size(); ++lane) {
    copy_of_[lane] = model.last_of_copy(lane);
  }
}

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

// Would the two neighbouring runs of ops bring one of a lane, or of a stage copy and microbatch,
// out of order?
bool OrderAnnealing::is_bound(const Move& move) const {
  const std::vector<OpId>& order = orders_[move.rank];
  for (std::uint32_t i = move.first; i < move.middle; ++i) {
    const SearchModel::LaneId lane = model_.lane_of(order[i]);
    const std::uint32_t number = model_.number_of(order[i]);
    for (std::uint32_t j = move.middle; j < move.last; ++j) {
      const SearchModel::LaneId other = model_.lane_of(order[j]);
      if (other == lane) return true;
      if (model_.number_of(order[j]) == number && copy_of_[other] == copy_of_[lane]) return true;
    }
  }
  return false;
}

// Two neighbouring runs of ops on a rank change places, an op of the critical path among them or
// next to them: mostly a single op passes a few others; now and then whole blocks, for where memory
// ties an F to its gradient work.
bool OrderAnnealing::propose(Move& move) {
  const Place place = path_[random_.below(static_cast<std::uint32_t>(path_.size()))];
  const auto size = static_cast<std::uint32_t>(orders_[place.rank].size());
  std::uint32_t left = 1;
  std::uint32_t right = 1;
  if (random_.below(4) == 0) {
    left += random_.below(6);
    right += random_.below(6);
  } else {
    while (right < size && random_.below(2) == 0) ++right;
    if (random_.below(2) == 0) std::swap(left, right);
  }
  // The op at `place` is the first or last of one of the runs.
  std::uint32_t first = place.position;
  switch (random_.below(3)) {
    case 0:
      break;
    case 1:
      if (first < left) return false;
      first -= left;
      break;
    default:
      if (first + 1 < left + right) return false;
      first -= left + right - 1;
  }
  move = {place.rank, first, first + left, first + left + right};
  return move.last <= size && !is_bound(move);
}

void OrderAnnealing::apply(const Move& move) {
  std::vector<OpId>& order = orders_[move.rank];
  const auto at = [&](std::uint32_t i) { return order.begin() + static_cast<std::ptrdiff_t>(i); };
  std::rotate(at(move.first), at(move.middle), at(move.last));
}

void OrderAnnealing::run(std::int64_t moves, double temperature) {
  for (std::int64_t i = 0; i < moves; ++i) {
    Move move;
    if (!propose(move)) continue;
    apply(move);
    const double worse = -std::log(random_.unit() + 1e-12) * temperature;
    const std::int64_t limit = makespan_ + static_cast<std::int64_t>(worse) + 1;
    std::int64_t makespan = -1;
    if (memory_.fits(move.rank, orders_[move.rank])) makespan = evaluator_.evaluate(orders_, limit);
    if (makespan < 0) {
      move.middle = move.first + move.last - move.middle;
      apply(move);
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
