#include "scheduler/problem/costs.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace counterflow {
namespace {

double factor(const std::vector<double>& factors, Microbatch microbatch) {
  return factors.empty() ? 1.0 : factors[static_cast<std::size_t>(microbatch)];
}

Time scaled(Time cost, double by) {
  return Time{std::llround(static_cast<double>(cost.count()) * by)};
}

}  // namespace

void PairCosts::add(std::vector<Time> to_forward, std::vector<Time> to_backward) {
  to_forward_ = std::move(to_forward);
  to_backward_ = std::move(to_backward);
}

Time PairCosts::find(Stage forward, Stage backward) const {
  const auto entry = table_.find(key(forward, backward));
  const Time given = entry == table_.end() ? default_ : entry->second;
  if (to_forward_.empty() || given < Time{0}) return given;
  return given + to_forward_[static_cast<std::size_t>(forward)] +
         to_backward_[static_cast<std::size_t>(backward)];
}

Time PairCosts::largest() const {
  Time largest = std::max(default_, Time{0});
  for (const auto& [stages, cost] : table_) largest = std::max(largest, cost);
  if (to_forward_.empty() || empty()) return largest;
  return largest + std::ranges::max(to_forward_) + std::ranges::max(to_backward_);
}

Time Costs::duration(const Op& op) const {
  const StageCost& cost = stages_[op.stage];
  const auto input = [&] {
    return uniform() ? cost.backward_input
                     : scaled(cost.backward_input, factor(factors_.backward_input, op.microbatch));
  };
  const auto weight = [&] {
    return uniform()
               ? cost.backward_weight
               : scaled(cost.backward_weight, factor(factors_.backward_weight, op.microbatch));
  };
  switch (op.kind) {
    case OpKind::forward:
      return uniform() ? cost.forward
                       : scaled(cost.forward, factor(factors_.forward, op.microbatch));
    case OpKind::backward:
      // The sum of the rounded parts, so that splitting a backward never changes the total.
      return input() + weight();
    case OpKind::backward_input:
      return input();
    case OpKind::backward_weight:
      return weight();
    case OpKind::recompute:
      return scaled(cost.restore, factor(factors_.forward, op.microbatch));
    case OpKind::offload:
      return scaled(cost.store, factor(factors_.activation, op.microbatch));
    case OpKind::reload:
      return scaled(cost.restore, factor(factors_.activation, op.microbatch));
    default:
      return Time{0};
  }
}

Time Costs::duration(const Op& forward, const Op& backward) const {
  const Time parts_alone = duration(forward) + duration(backward);
  // Without a weight gradient I is the whole backward, and fusing it cannot cost more than not to.
  const bool is_input_alone =
      backward.kind == OpKind::backward_input && stages_[backward.stage].backward_weight == Time{0};
  if (backward.kind != OpKind::backward && !is_input_alone) return parts_alone;
  const Time pair = fused(forward, backward);
  if (pair < Time{0}) return parts_alone;
  return is_input_alone ? std::min(pair, parts_alone) : pair;
}

Time Costs::fused(const Op& forward, const Op& backward) const {
  const Time pair = pairs_.find(forward.stage, backward.stage);
  if (pair < Time{0} || uniform()) return pair;
  const auto f = static_cast<double>(stages_[forward.stage].forward.count());
  const auto i = static_cast<double>(stages_[backward.stage].backward_input.count());
  const auto w = static_cast<double>(stages_[backward.stage].backward_weight.count());
  const double parts = f + i + w;
  if (parts <= 0) return pair;
  const double scaled_parts = f * factor(factors_.forward, forward.microbatch) +
                              i * factor(factors_.backward_input, backward.microbatch) +
                              w * factor(factors_.backward_weight, backward.microbatch);
  return scaled(pair, scaled_parts / parts);
}

}  // namespace counterflow
