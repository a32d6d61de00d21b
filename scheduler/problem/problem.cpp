#include "scheduler/problem/problem.h"

#include <cmath>
#include <cstddef>

namespace counterflow {
namespace {

// Rounding is monotone, so a part never outgrows the whole it is subtracted from.
Bytes scaled(Bytes size, const std::vector<double>& factors, Microbatch microbatch) {
  if (factors.empty()) return size;
  return {std::llround(static_cast<double>(size.value) *
                       factors[static_cast<std::size_t>(microbatch)])};
}

}  // namespace

bool Problem::needs_backward_input(Stage stage) const {
  if (forward_only) return false;
  // Along a chain there is nothing to keep; a graph that joins needs marks.
  while (!needs_backward_weight(stage)) {
    const auto feeders = graph.predecessors(stage);
    if (feeders.empty()) return false;
    if (feeders.size() > 1) return any_feeder_trains(stage);
    stage = feeders.front();
  }
  return true;
}

bool Problem::any_feeder_trains(Stage stage) const {
  std::vector<std::uint8_t> upstream(static_cast<std::size_t>(stage) + 1, 0);
  upstream.back() = 1;
  for (Stage s = stage; s >= 0; --s) {
    if (upstream[static_cast<std::size_t>(s)] == 0) continue;
    if (needs_backward_weight(s)) return true;
    for (const Stage feeder : graph.predecessors(s)) upstream[static_cast<std::size_t>(feeder)] = 1;
  }
  return false;
}

Time Problem::duration(const Slot& slot) const {
  return slot.is_pair() ? costs.duration(slot.first, slot.second) : costs.duration(slot.first);
}

Bytes Problem::allocated(const Op& op) const {
  if (op.kind != OpKind::forward) return {};
  return scaled(memory[op.stage].activation, costs.factors().activation, op.microbatch);
}

Bytes Problem::freed(const Op& op) const {
  const auto& factors = costs.factors().activation;
  const auto all = [&] { return scaled(memory[op.stage].activation, factors, op.microbatch); };
  const auto kept = [&] {
    return scaled(memory[op.stage].kept_for_weight, factors, op.microbatch);
  };
  switch (op.kind) {
    case OpKind::forward:
      return needs_backward_input(op.stage) ? Bytes{} : all();
    case OpKind::backward:
      return all();
    case OpKind::backward_input:
      return needs_backward_weight(op.stage) ? all() - kept() : all();
    case OpKind::backward_weight:
      return kept();
    default:
      return {};
  }
}

}  // namespace counterflow
