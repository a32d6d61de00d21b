#include "scheduler/problem/problem.h"

#include <algorithm>
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

std::vector<double> slice(const std::vector<double>& factors, const Phase& phase) {
  if (factors.empty()) return {};
  const auto first = factors.begin() + phase.first;
  return {first, first + phase.count};
}

}  // namespace

std::size_t Problem::phase_of(Microbatch microbatch) const {
  if (phases.empty()) return 0;
  const auto after = std::ranges::upper_bound(phases, microbatch, {}, &Phase::first);
  return static_cast<std::size_t>(after - phases.begin()) - 1;
}

Problem Problem::only(const Phase& phase) const {
  Problem part = *this;
  part.phases.clear();
  part.microbatches = phase.count;
  part.steps = 1;
  part.forward_only = !phase.trains();
  const MicrobatchFactors& all = costs.factors();
  part.costs = Costs(costs.stages(),
                     {slice(all.forward, phase), slice(all.backward_input, phase),
                      slice(all.backward_weight, phase), slice(all.activation, phase)},
                     costs.pairs());
  return part;
}

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

Time Problem::hop(Stage from, Stage to, int replica) const {
  return links.alone(placement.rank_of(from, replica), placement.rank_of(to, replica),
                     wire_size(from, to));
}

Time Problem::duration(const Slot& slot) const {
  return slot.is_pair() ? costs.duration(slot.first, slot.second) : costs.duration(slot.first);
}

Bytes Problem::allocated(const Op& op) const {
  const auto& factors = costs.factors().activation;
  const Bytes all = scaled(memory[op.stage].activation, factors, op.microbatch);
  if (op.kind == OpKind::forward) return all;
  if (op.kind != OpKind::recompute && op.kind != OpKind::reload) return {};
  return all - scaled(keeping_of(op.stage).kept, factors, op.microbatch);
}

Bytes Problem::freed(const Op& op) const {
  const auto& factors = costs.factors().activation;
  const auto all = [&] { return scaled(memory[op.stage].activation, factors, op.microbatch); };
  const auto kept = [&] {
    return scaled(memory[op.stage].kept_for_weight, factors, op.microbatch);
  };
  const auto let_go = [&] {
    return all() - scaled(keeping_of(op.stage).kept, factors, op.microbatch);
  };
  switch (op.kind) {
    case OpKind::forward:
      if (!needs_backward_input(op.stage, op.microbatch)) return all();
      return keeping_of(op.stage).kind == KeepingKind::recompute ? let_go() : Bytes{};
    case OpKind::offload:
      return let_go();
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
