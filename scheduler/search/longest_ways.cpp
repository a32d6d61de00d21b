#include "scheduler/search/longest_ways.h"

#include <algorithm>
#include <limits>

namespace counterflow {
namespace {

constexpr SearchModel::OpId kNoOp = std::numeric_limits<SearchModel::OpId>::max();

}  // namespace

template <typename Sense>
LongestWays<Sense>::LongestWays(const SearchModel& model)
    : model_(model),
      reaches_back_(std::ranges::any_of(
          model.in_edges, [](const SearchModel::Edge& edge) { return edge.lag < 0; })),
      ops_(model.ops()),
      lanes_(model.lanes.size()),
      begins_(model.ranks()),
      places_(model.ranks()),
      clocks_(model.ranks()),
      waits_for_(model.ranks()) {
  for (LaneId lane = 0; lane < lanes_.size(); ++lane) add_lane(lane);
}

template <typename Sense>
void LongestWays<Sense>::add_lane(LaneId lane) {
  const SearchModel::Lane& its = model_.lanes[lane];
  for (std::uint32_t number = 0; number < its.count; ++number) {
    const OpId op = model_.id(lane, number);
    ops_[op].duration = model_.duration(lane, op);
    ops_[op].lane = lane;
  }
  Lane& mine = lanes_[lane];
  mine.left = Sense::left(its);
  mine.first_before = static_cast<std::uint32_t>(befores_.size());
  for (const SearchModel::Edge& edge : Sense::before(model_, lane)) {
    // On a rank ops of one stage copy and microbatch never leave their order.
    if (model_.last_of_copy(edge.lane) == model_.last_of_copy(lane) && edge.lag <= 0) continue;
    befores_.push_back({edge.lag, model_.id(edge.lane, 0) - model_.id(lane, 0)});
  }
  mine.last_before = static_cast<std::uint32_t>(befores_.size());
  mine.first_after = static_cast<std::uint32_t>(ranks_after_.size());
  for (const SearchModel::Edge& edge : Sense::after(model_, lane)) {
    const Rank rank = model_.lanes[edge.lane].rank;
    if (rank != its.rank) ranks_after_.push_back(static_cast<std::uint32_t>(rank));
  }
  mine.last_after = static_cast<std::uint32_t>(ranks_after_.size());
}

template <typename Sense>
std::int64_t LongestWays<Sense>::try_all(const Orders& orders, std::int64_t cutoff) {
  cutoff_ = cutoff;
  since_ = std::numeric_limits<std::int64_t>::min();
  std::ranges::fill(begins_, 0U);
  std::ranges::copy(Sense::first(model_), clocks_.begin());
  return run(orders);
}

template <typename Sense>
std::int64_t LongestWays<Sense>::try_change(const Orders& orders, std::size_t rank,
                                            std::uint32_t first, std::uint32_t last,
                                            std::int64_t cutoff) {
  if (reaches_back_) return try_all(orders, cutoff);
  cutoff_ = cutoff;
  const auto size = static_cast<std::uint32_t>(orders[rank].size());
  const std::uint32_t changed = std::min(Sense::at(size, first), Sense::at(size, last - 1));
  since_ = clock_at(orders, rank, changed);
  for (std::size_t r = 0; r < orders.size(); ++r) {
    const auto end = static_cast<std::uint32_t>(orders[r].size());
    begins_[r] = first_since(orders[r], r == rank ? changed : end);
    clocks_[r] = clock_at(orders, r, begins_[r]);
  }
  return run(orders);
}

// Of a rank's ops at places before `end`, which are as they were, the first that may change.
template <typename Sense>
std::uint32_t LongestWays<Sense>::first_since(const std::vector<OpId>& order,
                                              std::uint32_t end) const {
  const auto size = static_cast<std::uint32_t>(order.size());
  std::uint32_t begin = 0;
  while (begin < end) {
    const std::uint32_t middle = (begin + end) / 2;
    if (without(order[Sense::at(size, middle)]) < since_) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin;
}

// When a rank's op at this place may begin, as far as the rank is concerned.
template <typename Sense>
std::int64_t LongestWays<Sense>::clock_at(const Orders& orders, std::size_t rank,
                                          std::uint32_t place) const {
  const auto size = static_cast<std::uint32_t>(orders[rank].size());
  return place == 0 ? Sense::first(model_)[rank] : with(orders[rank][Sense::at(size, place - 1)]);
}

template <typename Sense>
std::int64_t LongestWays<Sense>::run(const Orders& orders) {
  ++round_;
  hopeless_ = false;
  std::ranges::copy(begins_, places_.begin());
  std::ranges::fill(waits_for_, kNoOp);
  runnable_.clear();
  for (std::size_t rank = orders.size(); rank-- > 0;) {
    runnable_.push_back(static_cast<std::uint32_t>(rank));
  }
  while (!runnable_.empty() && !hopeless_) {
    const std::uint32_t rank = runnable_.back();
    runnable_.pop_back();
    advance(orders, rank);
  }
  if (hopeless_) return -1;
  std::int64_t makespan = 0;
  for (std::size_t rank = 0; rank < orders.size(); ++rank) {
    if (places_[rank] != orders[rank].size()) return -1;
    makespan = std::max(makespan, clocks_[rank] + Sense::last(model_)[rank]);
  }
  return makespan;
}

template <typename Sense>
void LongestWays<Sense>::advance(const Orders& orders, std::size_t rank) {
  const std::vector<OpId>& order = orders[rank];
  std::int64_t clock = clocks_[rank];
  std::uint32_t place = places_[rank];
  const auto size = static_cast<std::uint32_t>(order.size());
  for (; place < size; ++place) {
    const OpId op = order[Sense::at(size, place)];
    Way& mine = ops_[op];
    const Lane& lane = lanes_[mine.lane];
    std::int64_t begin = clock;
    for (std::uint32_t k = lane.first_before; k < lane.last_before; ++k) {
      const OpId input = op + befores_[k].ahead;
      const Way& its = ops_[input];
      std::int64_t end = its.tried;
      if (its.round != round_) {
        if (its.way - its.duration >= since_) {
          waits_for_[rank] = input;
          places_[rank] = place;
          clocks_[rank] = clock;
          return;
        }
        end = its.way;
      }
      begin = std::max(begin, end + befores_[k].lag);
    }
    clock = begin + mine.duration;
    mine.tried = clock;
    mine.round = round_;
    if (clock + lane.left >= cutoff_) {
      hopeless_ = true;
      return;
    }
    for (std::uint32_t k = lane.first_after; k < lane.last_after; ++k) {
      const std::uint32_t other = ranks_after_[k];
      if (waits_for_[other] != op) continue;
      waits_for_[other] = kNoOp;
      runnable_.push_back(other);
    }
  }
  places_[rank] = place;
  clocks_[rank] = clock;
}

template <typename Sense>
void LongestWays<Sense>::keep(const Orders& orders) {
  for (std::size_t rank = 0; rank < orders.size(); ++rank) {
    const std::vector<OpId>& order = orders[rank];
    const auto size = static_cast<std::uint32_t>(order.size());
    for (std::uint32_t place = begins_[rank]; place < size; ++place) {
      Way& each = ops_[order[Sense::at(size, place)]];
      each.way = each.tried;
    }
  }
}

template class LongestWays<WaysIn>;
template class LongestWays<WaysOut>;

}  // namespace counterflow
