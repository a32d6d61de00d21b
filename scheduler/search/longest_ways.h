#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/search/model.h"

namespace counterflow {

// For every op of the orders the longest way into it, from the begin of all to its own end, or out
// of it, from its own begin to the end of all; kept up to date as the orders change rank by rank.
// What a change cannot reach is not looked at again: all that begins before the first moved op, or
// of ways out, all that ends behind the last. Not where ops fuse or messages queue.
//
// `Sense` says which way; the two differ in where a rank's order and the edges are read from.
template <typename Sense>
class LongestWays {
 public:
  using OpId = SearchModel::OpId;
  using Orders = SearchModel::Orders;

  explicit LongestWays(const SearchModel& model);

  // What comes of orders of which nothing is known: the makespan, -1 if they wait for each other in
  // a circle or as soon as it is known to reach `cutoff`. O(ops).
  std::int64_t try_all(const Orders& orders, std::int64_t cutoff);
  // The same for orders that differ from those kept last in positions [first, last) of one rank.
  // O(ops that begin behind the first, or end before the last of these).
  std::int64_t try_change(const Orders& orders, std::size_t rank, std::uint32_t first,
                          std::uint32_t last, std::int64_t cutoff);
  // The orders tried last, which returned a makespan, are those kept.
  void keep(const Orders& orders);

  // Of the orders kept: the longest way, the op itself included, and without it.
  [[nodiscard]] std::int64_t with(OpId op) const { return ops_[op].way; }
  [[nodiscard]] std::int64_t without(OpId op) const { return ops_[op].way - ops_[op].duration; }

 private:
  using LaneId = SearchModel::LaneId;
  struct Way {
    std::int64_t way = 0;    // of the orders kept
    std::int64_t tried = 0;  // of those tried last, if that was in `round`
    std::int64_t duration = 0;
    std::uint32_t round = 0;
    LaneId lane = 0;
  };
  // An op of the same number in another lane, which its lane waits for.
  struct Before {
    std::int64_t lag = 0;
    std::uint32_t ahead = 0;  // its id less the op's own, modulo 2^32
  };
  // Spans of `befores_` and of `ranks_after_`, and the shortest way that is left whatever the
  // order.
  struct Lane {
    std::uint32_t first_before = 0;
    std::uint32_t last_before = 0;
    std::uint32_t first_after = 0;
    std::uint32_t last_after = 0;
    std::int64_t left = 0;
  };

  void add_lane(LaneId lane);
  [[nodiscard]] std::uint32_t first_since(const std::vector<OpId>& order, std::uint32_t end) const;
  [[nodiscard]] std::int64_t clock_at(const Orders& orders, std::size_t rank,
                                      std::uint32_t place) const;
  void advance(const Orders& orders, std::size_t rank);
  std::int64_t run(const Orders& orders);

  const SearchModel& model_;
  bool reaches_back_;            // a negative lag: an op may begin before what it waits for
  std::vector<Way> ops_;         // [op]
  std::vector<Lane> lanes_;      // [lane]
  std::vector<Before> befores_;  // of other ranks, or longer to wait for than their end
  std::vector<std::uint32_t> ranks_after_;  // other ranks where something waits for a lane
  std::vector<std::uint32_t> begins_;       // [rank] place of the first op looked at
  std::vector<std::uint32_t> places_;       // [rank] of the next one
  std::vector<std::int64_t> clocks_;        // [rank] when its last one ends
  std::vector<OpId> waits_for_;             // [rank] what its next one waits for
  std::vector<std::uint32_t> runnable_;
  std::uint32_t round_ = 0;
  std::int64_t since_ = 0;  // what begins earlier is as it was
  std::int64_t cutoff_ = 0;
  bool hopeless_ = false;
};

// From the begin of all.
struct WaysIn {
  static std::uint32_t at(std::uint32_t /*size*/, std::uint32_t place) { return place; }
  static auto before(const SearchModel& model, SearchModel::LaneId lane) {
    return model.inputs(lane);
  }
  static auto after(const SearchModel& model, SearchModel::LaneId lane) {
    return model.outputs(lane);
  }
  static std::int64_t left(const SearchModel::Lane& lane) { return lane.tail; }
  static const std::vector<std::int64_t>& first(const SearchModel& model) {
    return model.rank_head;
  }
  static const std::vector<std::int64_t>& last(const SearchModel& model) { return model.rank_tail; }
};

// To the end of all.
struct WaysOut {
  static std::uint32_t at(std::uint32_t size, std::uint32_t place) { return size - 1 - place; }
  static auto before(const SearchModel& model, SearchModel::LaneId lane) {
    return model.outputs(lane);
  }
  static auto after(const SearchModel& model, SearchModel::LaneId lane) {
    return model.inputs(lane);
  }
  static std::int64_t left(const SearchModel::Lane& lane) { return lane.head; }
  static const std::vector<std::int64_t>& first(const SearchModel& model) {
    return model.rank_tail;
  }
  static const std::vector<std::int64_t>& last(const SearchModel& model) { return model.rank_head; }
};

extern template class LongestWays<WaysIn>;
extern template class LongestWays<WaysOut>;

}  // namespace counterflow
