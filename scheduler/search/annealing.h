#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "scheduler/search/budget.h"
#include "scheduler/search/model.h"
#include "scheduler/search/move_estimate.h"
#include "scheduler/search/order_memory.h"
#include "scheduler/search/order_times.h"
#include "scheduler/search/random.h"

namespace counterflow {

// Annealing on rank orders: two neighbouring runs of ops on a rank change places, around an op of
// the critical path, within the memory; a pair is fused or taken apart; of unequal microbatches two
// change places everywhere. What is not estimated to be too long is evaluated whole and kept by the
// usual rule.
class OrderAnnealing {
 public:
  OrderAnnealing(const SearchModel& model, std::uint64_t seed);

  // Starts from these orders, which must complete and fit.
  void start(const SearchModel::Orders& orders);
  // Tries moves until the meter shows `until` or the best reaches `target`, while it cools from
  // `temperature` (in the units of time) to nothing.
  void run(BudgetMeter& meter, double until, std::int64_t target, double temperature);

  [[nodiscard]] const SearchModel::Orders& best() const { return best_; }
  [[nodiscard]] std::int64_t best_makespan() const { return best_makespan_; }

 private:
  using OpId = SearchModel::OpId;
  using LaneId = SearchModel::LaneId;
  struct Place {
    std::uint32_t rank = 0;
    std::uint32_t position = 0;
  };
  // Positions [first, middle) and [middle, last) of a rank change places.
  struct Move {
    std::uint32_t rank = 0;
    std::uint32_t first = 0;
    std::uint32_t middle = 0;
    std::uint32_t last = 0;
  };

  void trace();
  [[nodiscard]] Place last_of_all();
  [[nodiscard]] std::optional<Place> reason_of(const Place& place);
  bool propose(Move& move);
  [[nodiscard]] bool is_bound(const Move& move) const;
  [[nodiscard]] bool cuts_pair(const Move& move) const;
  void apply(const Move& move);
  bool change_places(std::int64_t limit);
  bool change_pair(std::int64_t limit);
  bool change_microbatches(std::int64_t limit);
  void swap_microbatches(std::uint8_t direction, std::uint32_t a, std::uint32_t b);
  [[nodiscard]] bool fuse(std::uint32_t rank, std::uint32_t position);
  [[nodiscard]] bool split(std::uint32_t rank, std::uint32_t position);
  [[nodiscard]] bool accept(std::int64_t makespan);

  const SearchModel& model_;
  OrderTimes times_;
  OrderMemory memory_;
  MoveEstimate estimate_;
  SearchRandom random_;
  SearchModel::Orders orders_, best_;
  std::vector<LaneId> lane_of_;             // [op]
  std::vector<LaneId> copy_of_;             // [lane] its stage copy, as that one's last lane
  std::vector<std::uint32_t> position_of_;  // [op]
  std::vector<Place> path_;                 // a critical path, last op first
  std::vector<Place> turns_;                // of it, where it comes from or goes to another rank
  std::int64_t makespan_ = 0;
  std::int64_t best_makespan_ = 0;
};

}  // namespace counterflow
