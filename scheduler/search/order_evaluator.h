#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/search/model.h"

namespace counterflow {

// The Evaluator in terms of a SearchModel: every op as early as its rank's order and its inputs
// allow. Keeps its scratch memory; one object a thread.
class OrderEvaluator {
 public:
  explicit OrderEvaluator(const SearchModel& model);

  // The makespan, -1 if the orders wait for each other in a circle, or as soon as it is known to
  // reach `cutoff`. O(ops).
  std::int64_t evaluate(const SearchModel::Orders& orders,
                        std::int64_t cutoff = SearchModel::kUnlimited);

  // Of the last evaluation that returned a makespan. Of a fused pair all parts, W included.
  [[nodiscard]] const std::vector<std::int64_t>& begins() const { return begins_; }
  [[nodiscard]] const std::vector<std::int64_t>& ends() const { return ends_; }
  // The same ops, each after all that it waits for; of a fused pair nothing.
  [[nodiscard]] std::span<const SearchModel::OpId> sequence() const {
    return {sequence_.data(), done_};
  }
  // Ops evaluated since the object was made.
  [[nodiscard]] std::int64_t work() const { return work_; }

 private:
  using LaneId = SearchModel::LaneId;
  using OpId = SearchModel::OpId;

  void advance(const SearchModel::Orders& orders, std::uint32_t rank);
  bool take_pair(OpId f, OpId g, std::uint32_t rank);
  void send(LaneId lane, OpId op, std::int64_t end);
  [[nodiscard]] bool is_ready(LaneId lane, OpId op) const {
    return got_[op] >= model_.lanes[lane].inputs;
  }

  const SearchModel& model_;
  std::vector<LaneId> lane_of_;         // [op]
  std::vector<std::int64_t> arrivals_;  // [op] latest input so far
  std::vector<std::uint8_t> got_;       // [op] inputs so far
  std::vector<std::int64_t> begins_, ends_;
  std::vector<std::int64_t> link_free_;
  std::vector<std::int64_t> clocks_;      // [rank]
  std::vector<std::uint32_t> positions_;  // [rank]
  std::vector<OpId> waits_for_;           // [rank] the op it is stuck at
  std::vector<std::uint32_t> runnable_;
  std::vector<OpId> sequence_;
  std::size_t done_ = 0;
  std::int64_t cutoff_ = 0;
  bool hopeless_ = false;
  std::int64_t work_ = 0;
};

}  // namespace counterflow
