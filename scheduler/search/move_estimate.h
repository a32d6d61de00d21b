#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/search/model.h"
#include "scheduler/search/order_evaluator.h"

namespace counterflow {

// The makespan after neighbouring runs of ops of a rank change places, as the times before the move
// let expect it: the longest of the ways through the moved ops, with other ranks' parts of these
// ways as they were (as for swaps in a job shop: Taillard 1994; Balas and Vazacopoulos 1998). Where
// it is wrong the move changed those parts, or the longest way avoids the moved ops. Tells nearly
// all bad moves without an evaluation.
class MoveEstimate {
 public:
  explicit MoveEstimate(const SearchModel& model);

  // Is there one for this model? Not where ops fuse or messages queue.
  [[nodiscard]] bool exists() const { return exists_; }

  // Remembers the times of the evaluator's last makespan. O(ops).
  void take(const OrderEvaluator& evaluator);

  // For a rank's order in which [first, middle) and [middle, last) shall change places.
  // O(last - first).
  [[nodiscard]] std::int64_t after(const std::vector<SearchModel::OpId>& order, std::uint32_t first,
                                   std::uint32_t middle, std::uint32_t last) const;

 private:
  using OpId = SearchModel::OpId;
  using LaneId = SearchModel::LaneId;

  [[nodiscard]] std::int64_t arrival(OpId op) const;
  [[nodiscard]] std::int64_t way_out(OpId op) const;

  const SearchModel& model_;
  bool exists_;
  std::vector<LaneId> lane_of_;                   // [op]
  std::vector<std::int64_t> begins_;              // [op]
  std::vector<std::int64_t> ends_;                // [op]
  std::vector<std::int64_t> tails_;               // [op] longest way from its end to the end of all
  std::vector<std::int64_t> rank_ways_;           // [rank] scratch of `take`
  mutable std::vector<std::int64_t> ends_after_;  // [moved op] scratch of `after`
};

}  // namespace counterflow
