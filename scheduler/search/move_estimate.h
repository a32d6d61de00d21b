#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/search/model.h"
#include "scheduler/search/order_times.h"

namespace counterflow {

// The makespan after neighbouring runs of ops of a rank change places, as the times before the move
// let expect it: the longest of the ways through the moved ops, with other ranks' parts of these
// ways as they were (as for swaps in a job shop: Taillard 1994; Balas and Vazacopoulos 1998). Where
// it is wrong the move changed those parts, or the longest way avoids the moved ops. Tells nearly
// all bad moves without an evaluation.
class MoveEstimate {
 public:
  // Of orders whose times are kept there.
  MoveEstimate(const SearchModel& model, const OrderTimes& times) : model_(model), times_(times) {}

  // Is there one for this model? Not where ops fuse or messages queue.
  [[nodiscard]] bool exists() const { return times_.has_ways_out(); }

  // For a rank's order in which [first, middle) and [middle, last) shall change places.
  // O(last - first).
  [[nodiscard]] std::int64_t after(const std::vector<SearchModel::OpId>& order, std::uint32_t first,
                                   std::uint32_t middle, std::uint32_t last) const;

 private:
  using OpId = SearchModel::OpId;
  using LaneId = SearchModel::LaneId;

  [[nodiscard]] std::int64_t duration(OpId op) const { return times_.end(op) - times_.begin(op); }
  [[nodiscard]] std::int64_t arrival(OpId op) const;
  [[nodiscard]] std::int64_t way_out(OpId op) const;

  const SearchModel& model_;
  const OrderTimes& times_;
  mutable std::vector<std::int64_t> ends_after_;  // [moved op] scratch of `after`
};

}  // namespace counterflow
