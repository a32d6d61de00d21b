#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "scheduler/search/longest_ways.h"
#include "scheduler/search/model.h"
#include "scheduler/search/order_evaluator.h"

namespace counterflow {

// When the ops of orders begin and end, kept up to date as the orders change, for whoever changes
// them thousands of times. Where ops fuse or messages queue all is evaluated anew each time.
class OrderTimes {
 public:
  using OpId = SearchModel::OpId;
  using Orders = SearchModel::Orders;

  explicit OrderTimes(const SearchModel& model);

  // Takes orders of which nothing is known. The makespan; -1, and the orders before are still
  // those known, if these wait for each other in a circle or as soon as it is known to reach
  // `cutoff`. O(ops).
  std::int64_t take(const Orders& orders, std::int64_t cutoff = SearchModel::kUnlimited);
  // The same for orders that differ from those known in positions [first, last) of one rank alone.
  std::int64_t take_change(const Orders& orders, std::size_t rank, std::uint32_t first,
                           std::uint32_t last, std::int64_t cutoff);

  // Of the orders taken last, if that was not refused.
  [[nodiscard]] std::int64_t begin(OpId op) const {
    return ways_ ? ways_->in.without(op) : evaluator_->begins()[op];
  }
  [[nodiscard]] std::int64_t end(OpId op) const {
    return ways_ ? ways_->in.with(op) : evaluator_->ends()[op];
  }
  // Is the rest known? Not where ops fuse or messages queue.
  [[nodiscard]] bool has_ways_out() const { return ways_.has_value(); }
  // The longest way from the begin of an op to the end of all, and from its end.
  [[nodiscard]] std::int64_t way_out(OpId op) const { return ways_->out.with(op); }
  [[nodiscard]] std::int64_t tail(OpId op) const { return ways_->out.without(op); }

 private:
  struct Ways {
    explicit Ways(const SearchModel& model) : in(model), out(model) {}
    LongestWays<WaysIn> in;
    LongestWays<WaysOut> out;
  };

  // One of the two.
  std::optional<Ways> ways_;
  std::optional<OrderEvaluator> evaluator_;
};

}  // namespace counterflow
