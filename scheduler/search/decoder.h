#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/search/list_scheduler.h"
#include "scheduler/search/model.h"
#include "scheduler/search/order_evaluator.h"
#include "scheduler/search/priorities.h"

namespace counterflow {

// Turns rules into orders, scheduling forwards or backwards in time. Keeps both models and their
// scratch memory; one object a thread.
class Decoder {
 public:
  // `for_span`: see SearchModel::aim_at_span.
  explicit Decoder(const Problem& problem, bool for_span = false,
                   std::vector<std::vector<Microbatch>> sequence = {});
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  [[nodiscard]] const SearchModel& model() const { return forward_; }
  [[nodiscard]] const SearchModel& reversed_model() const { return backward_; }

  // The makespan of the order a rule leads to, every op as early as it can; -1 as soon as it is
  // known to reach `cutoff`.
  std::int64_t decode(const PriorityRule& rule, std::int64_t cutoff = SearchModel::kUnlimited);
  // The same for a rule in terms of the model, or of its reverse.
  std::int64_t decode(const ListRule& rule, bool backwards,
                      std::int64_t cutoff = SearchModel::kUnlimited);
  // Of the last one that returned a makespan, in terms of model().
  [[nodiscard]] const SearchModel::Orders& orders() const { return orders_; }

 private:
  SearchModel forward_, backward_;
  ListScheduler forwards_, backwards_;
  OrderEvaluator evaluator_;
  SearchModel::Orders orders_;
};

}  // namespace counterflow
