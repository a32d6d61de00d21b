#include "scheduler/search/order_times.h"

namespace counterflow {

OrderTimes::OrderTimes(const SearchModel& model) {
  if (model.has_pairs || model.limited_links) {
    evaluator_.emplace(model);
  } else {
    ways_.emplace(model);
  }
}

std::int64_t OrderTimes::take(const Orders& orders, std::int64_t cutoff) {
  if (!ways_) return evaluator_->evaluate(orders, cutoff);
  const std::int64_t makespan = ways_->in.try_all(orders, cutoff);
  if (makespan < 0) return -1;
  ways_->in.keep(orders);
  ways_->out.try_all(orders, SearchModel::kUnlimited);
  ways_->out.keep(orders);
  return makespan;
}

std::int64_t OrderTimes::take_change(const Orders& orders, std::size_t rank, std::uint32_t first,
                                     std::uint32_t last, std::int64_t cutoff) {
  if (!ways_) return evaluator_->evaluate(orders, cutoff);
  const std::int64_t makespan = ways_->in.try_change(orders, rank, first, last, cutoff);
  if (makespan < 0) return -1;
  ways_->in.keep(orders);
  ways_->out.try_change(orders, rank, first, last, SearchModel::kUnlimited);
  ways_->out.keep(orders);
  return makespan;
}

}  // namespace counterflow
