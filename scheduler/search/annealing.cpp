#include "scheduler/search/annealing.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace counterflow {
namespace {

constexpr SearchModel::OpId kFused = SearchModel::kFused;
// On a longer path most moves lie within a stretch of one rank, where they change nothing.
constexpr std::size_t kLongPath = 1'000;
// A look at the clock costs as much as a try of so many ops.
constexpr std::size_t kLookOps = 4'000;

}  // namespace

OrderAnnealing::OrderAnnealing(const SearchModel& model, std::uint64_t seed)
    : model_(model),
      times_(model),
      memory_(model),
      estimate_(model, times_),
      random_(seed),
      lane_of_(model.ops()),
      copy_of_(model.lanes.size()),
      position_of_(model.ops()) {
  for (OpId op = 0; op < lane_of_.size(); ++op) lane_of_[op] = model.lane_of(op);
  for (LaneId lane = 0; lane < copy_of_.size(); ++lane) copy_of_[lane] = model.last_of_copy(lane);
}

void OrderAnnealing::start(const SearchModel::Orders& orders) {
  orders_ = best_ = orders;
  makespan_ = best_makespan_ = times_.take(orders_);
  trace();
}

void OrderAnnealing::run(BudgetMeter& meter, double until, std::int64_t target,
                         double temperature) {
  const double from = meter.share();
  double share = from;
  const std::size_t tries_a_look =
      meter.is_timed() ? std::clamp<std::size_t>(kLookOps / lane_of_.size(), 1, 16) : 1;
  for (std::size_t tries = 0; share < until && best_makespan_ > target; ++tries) {
    const double heat = temperature * (until - share) / (until - from);
    const double worse = -std::log(random_.unit() + 1e-12) * heat;
    const std::int64_t limit = makespan_ + static_cast<std::int64_t>(worse) + 1;
    meter.spend();
    bool changed = false;
    if (model_.has_pairs && random_.below(4) == 0) {
      changed = change_pair(limit);
    } else if (!model_.durations.empty() && random_.below(8) == 0) {
      changed = change_microbatches(limit);
    } else {
      changed = change_places(limit);
    }
    if (changed) {
      if (makespan_ < best_makespan_) {
        best_makespan_ = makespan_;
        best_ = orders_;
      }
      trace();
    }
    if (changed || tries % tries_a_look == 0) share = meter.share();
  }
}

// ---- the critical path ----------------------------------------------------------------------

// A place is where a slot begins: its op, or the first half of its pair.
OrderAnnealing::Place OrderAnnealing::last_of_all() {
  Place last;
  std::uint32_t ties = 0;
  for (std::uint32_t rank = 0; rank < orders_.size(); ++rank) {
    const std::vector<OpId>& order = orders_[rank];
    if (order.empty()) continue;
    if (times_.end(order.back()) + model_.rank_tail[rank] != makespan_) continue;
    if (random_.below(++ties) != 0) continue;
    last = {rank, static_cast<std::uint32_t>(order.size()) - 1};
    if (last.position > 0 && (order[last.position - 1] & kFused) != 0) --last.position;
  }
  return last;
}

// What a slot had to wait for; one of several at random.
std::optional<OrderAnnealing::Place> OrderAnnealing::reason_of(const Place& place) {
  const std::vector<OpId>& order = orders_[place.rank];
  const bool is_pair = (order[place.position] & kFused) != 0;
  const std::int64_t begin = times_.begin(order[place.position] & ~kFused);
  std::optional<Place> reason;
  std::uint32_t ties = 0;
  const auto start_of = [this](std::uint32_t rank, std::uint32_t position) {
    const bool second = position > 0 && (orders_[rank][position - 1] & kFused) != 0;
    return Place{rank, position - (second ? 1U : 0U)};
  };
  if (place.position > 0 && times_.end(order[place.position - 1]) == begin) {
    ties = 1;
    reason = start_of(place.rank, place.position - 1);
  }
  for (std::uint32_t i = place.position; i <= place.position + (is_pair ? 1U : 0U); ++i) {
    const OpId op = order[i] & ~kFused;
    const LaneId lane = lane_of_[op];
    const std::uint32_t number = op - model_.id(lane, 0);
    for (const SearchModel::Edge& edge : model_.inputs(lane)) {
      const OpId input = model_.id(edge.lane, number);
      if (times_.end(input) + edge.lag != begin || random_.below(++ties) != 0) continue;
      reason =
          start_of(static_cast<std::uint32_t>(model_.lanes[edge.lane].rank), position_of_[input]);
    }
  }
  return reason;
}

void OrderAnnealing::trace() {
  for (const std::vector<OpId>& order : orders_) {
    for (std::uint32_t i = 0; i < order.size(); ++i) position_of_[order[i] & ~kFused] = i;
  }
  path_.assign(1, last_of_all());
  // Ops without duration could lead round and round.
  const std::size_t longest = lane_of_.size();
  while (path_.size() < longest) {
    const std::optional<Place> reason = reason_of(path_.back());
    if (!reason) break;
    path_.push_back(*reason);
  }
  // Only where the path changes ranks can a single move shorten it.
  turns_.clear();
  for (std::size_t i = 1; i < path_.size(); ++i) {
    if (path_[i].rank == path_[i - 1].rank) continue;
    turns_.push_back(path_[i - 1]);
    turns_.push_back(path_[i]);
  }
}

// ---- moves ----------------------------------------------------------------------------------

bool OrderAnnealing::accept(std::int64_t makespan) {
  if (makespan < 0) return false;
  makespan_ = makespan;
  return true;
}

// Would it bring ops of a stage copy and microbatch out of order, or equal ones of a lane?
bool OrderAnnealing::is_bound(const Move& move) const {
  const std::vector<OpId>& order = orders_[move.rank];
  const bool equal = model_.durations.empty();
  for (std::uint32_t i = move.first; i < move.middle; ++i) {
    const OpId op = order[i] & ~kFused;
    const LaneId lane = lane_of_[op];
    const std::uint32_t number = op - model_.id(lane, 0);
    for (std::uint32_t j = move.middle; j < move.last; ++j) {
      const OpId other = order[j] & ~kFused;
      const LaneId its = lane_of_[other];
      if (its == lane && equal) return true;
      if (copy_of_[its] == copy_of_[lane] && other - model_.id(its, 0) == number) return true;
    }
  }
  return false;
}

bool OrderAnnealing::cuts_pair(const Move& move) const {
  const std::vector<OpId>& order = orders_[move.rank];
  for (const std::uint32_t cut : {move.first, move.middle, move.last}) {
    if (cut > 0 && (order[cut - 1] & kFused) != 0) return true;
  }
  return false;
}

// Mostly a single op passes a few others; now and then whole blocks, for where memory ties an F to
// its gradient work.
bool OrderAnnealing::propose(Move& move) {
  const bool at_turn = path_.size() > kLongPath && !turns_.empty() && random_.below(2) == 0;
  const std::vector<Place>& places = at_turn ? turns_ : path_;
  const Place place = places[random_.below(static_cast<std::uint32_t>(places.size()))];
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
  // The critical op is the first of one of the two runs, or the last of the second.
  std::uint32_t first = place.position;
  const std::uint32_t which = random_.below(3);
  const std::uint32_t back = which == 0 ? 0 : which == 1 ? left : left + right - 1;
  if (first < back) return false;
  first -= back;
  move = {place.rank, first, first + left, first + left + right};
  if (move.last > size || is_bound(move)) return false;
  return !model_.has_pairs || !cuts_pair(move);
}

void OrderAnnealing::apply(const Move& move) {
  std::vector<OpId>& order = orders_[move.rank];
  const auto at = [&](std::uint32_t i) { return order.begin() + static_cast<std::ptrdiff_t>(i); };
  std::rotate(at(move.first), at(move.middle), at(move.last));
}

bool OrderAnnealing::change_places(std::int64_t limit) {
  Move move;
  if (!propose(move)) return false;
  if (estimate_.exists() &&
      estimate_.after(orders_[move.rank], move.first, move.middle, move.last) >= limit) {
    return false;
  }
  apply(move);
  if (memory_.fits(move.rank, orders_[move.rank]) &&
      accept(times_.take_change(orders_, move.rank, move.first, move.last, limit))) {
    return true;
  }
  move.middle = move.first + move.last - move.middle;
  apply(move);
  return false;
}

// An op and the next one of the other kind become a pair where that one stands.
bool OrderAnnealing::fuse(std::uint32_t rank, std::uint32_t position) {
  std::vector<OpId>& order = orders_[rank];
  const OpId one = order[position];
  const OpKind kind = model_.lanes[lane_of_[one]].kind;
  if (kind == OpKind::backward_weight) return false;
  const bool is_forward = kind == OpKind::forward;
  constexpr std::uint32_t kReach = 8;
  const auto end = std::min(static_cast<std::uint32_t>(order.size()), position + kReach);
  for (std::uint32_t i = position + 1; i < end; ++i) {
    const OpId other = order[i];
    if ((other & kFused) != 0) {
      ++i;  // its second half
      continue;
    }
    const OpKind its = model_.lanes[lane_of_[other]].kind;
    const bool fits = is_forward ? makes_input_gradient(its) : its == OpKind::forward;
    if (!fits) continue;
    const OpId f = is_forward ? one : other;
    const OpId g = is_forward ? other : one;
    if (model_.pair_duration(lane_of_[f], f, lane_of_[g], g) < 0) return false;
    order[i] = g;
    order.insert(order.begin() + static_cast<std::ptrdiff_t>(i), f | kFused);
    order.erase(order.begin() + static_cast<std::ptrdiff_t>(position));
    if (const LaneId w = model_.weight_of(lane_of_[g]); w != SearchModel::kNoLane) {
      std::erase(order, model_.id(w, model_.number_of(g)));
    }
    return true;
  }
  return false;
}

// A pair becomes F and the backward, or the other way round.
bool OrderAnnealing::split(std::uint32_t rank, std::uint32_t position) {
  std::vector<OpId>& order = orders_[rank];
  order[position] &= ~kFused;
  const OpId g = order[position + 1];
  if (const LaneId w = model_.weight_of(lane_of_[g]); w != SearchModel::kNoLane) {
    order.insert(order.begin() + static_cast<std::ptrdiff_t>(position) + 2,
                 model_.id(w, model_.number_of(g)));
  }
  if (random_.below(2) == 0) std::swap(order[position], order[position + 1]);
  return true;
}

bool OrderAnnealing::change_pair(std::int64_t limit) {
  Place place = path_[random_.below(static_cast<std::uint32_t>(path_.size()))];
  if (random_.below(2) == 0) {
    place.rank = random_.below(static_cast<std::uint32_t>(orders_.size()));
    if (orders_[place.rank].empty()) return false;
    place.position = random_.below(static_cast<std::uint32_t>(orders_[place.rank].size()));
  }
  std::vector<OpId>& order = orders_[place.rank];
  if (place.position > 0 && (order[place.position - 1] & kFused) != 0) return false;
  std::vector<OpId> before = order;
  const bool is_pair = (order[place.position] & kFused) != 0;
  const bool done = is_pair ? split(place.rank, place.position) : fuse(place.rank, place.position);
  if (done && memory_.fits(place.rank, order) && accept(times_.take(orders_, limit))) return true;
  order = std::move(before);
  return false;
}

void OrderAnnealing::swap_microbatches(std::uint8_t direction, std::uint32_t a, std::uint32_t b) {
  for (std::vector<OpId>& order : orders_) {
    for (OpId& entry : order) {
      const OpId flag = entry & kFused;
      const LaneId lane = lane_of_[entry ^ flag];
      if (model_.lanes[lane].direction != direction) continue;
      const std::uint32_t number = (entry ^ flag) - model_.id(lane, 0);
      if (number == a) entry = model_.id(lane, b) | flag;
      if (number == b) entry = model_.id(lane, a) | flag;
    }
  }
}

bool OrderAnnealing::change_microbatches(std::int64_t limit) {
  const std::uint32_t direction =
      random_.below(static_cast<std::uint32_t>(model_.sequences.size()));
  const auto count = static_cast<std::uint32_t>(model_.sequences[direction].size());
  if (count < 2) return false;
  const std::uint32_t a = random_.below(count);
  const std::uint32_t b = random_.below(count);
  if (a == b) return false;
  swap_microbatches(static_cast<std::uint8_t>(direction), a, b);
  if (memory_.fits(orders_) && accept(times_.take(orders_, limit))) return true;
  swap_microbatches(static_cast<std::uint8_t>(direction), a, b);
  return false;
}

}  // namespace counterflow
