#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/search/model.h"
#include "scheduler/search/order_evaluator.h"
#include "scheduler/search/random.h"

namespace counterflow {

// What the ranks hold along their orders. Memory depends on the orders alone: an op allocates when
// it begins and frees when it ends, one after the other on a rank.
class OrderMemory {
 public:
  explicit OrderMemory(const SearchModel& model);

  // Are the orders within the limits? O(ops).
  [[nodiscard]] bool fits(const SearchModel::Orders& orders) const;
  [[nodiscard]] bool fits(std::size_t rank, const std::vector<SearchModel::OpId>& order) const;

 private:
  const SearchModel& model_;
};

// Annealing on rank orders: an op on the critical path changes places with its neighbour or moves a
// few places, within the memory; the new orders are evaluated whole and kept by the usual rule.
class OrderAnnealing {
 public:
  OrderAnnealing(const SearchModel& model, std::uint64_t seed);

  // Starts from these orders, which must complete and fit.
  void start(SearchModel::Orders orders, std::int64_t makespan);
  // Tries so many moves; `temperature` in the units of time.
  void run(std::int64_t moves, double temperature);

  [[nodiscard]] const SearchModel::Orders& best() const { return best_; }
  [[nodiscard]] std::int64_t best_makespan() const { return best_makespan_; }
  [[nodiscard]] std::int64_t makespan() const { return makespan_; }
  [[nodiscard]] const OrderEvaluator& evaluator() const { return evaluator_; }

 private:
  using OpId = SearchModel::OpId;
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
  bool propose(Move& move);
  [[nodiscard]] bool is_bound(const Move& move) const;
  void apply(const Move& move);

  const SearchModel& model_;
  OrderEvaluator evaluator_;
  OrderMemory memory_;
  SearchRandom random_;
  SearchModel::Orders orders_, best_;
  std::vector<std::uint32_t> position_of_;    // [op]
  std::vector<SearchModel::LaneId> copy_of_;  // [lane] its stage copy, as that one's last lane
  std::vector<Place> path_;                   // the critical path, last op first
  std::int64_t makespan_ = 0;
  std::int64_t best_makespan_ = 0;
};

}  // namespace counterflow
