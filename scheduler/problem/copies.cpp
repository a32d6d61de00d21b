#include "scheduler/problem/copies.h"

#include <cstddef>
#include <utility>
#include <vector>

namespace counterflow {
namespace {

template <typename T>
void repeat(std::vector<T>& entries, int copies) {
  const std::vector<T> one = entries;
  for (int copy = 1; copy < copies; ++copy) entries.insert(entries.end(), one.begin(), one.end());
}

// The phases of one pipeline; a single one where it has none.
std::vector<Phase> phases_of(const Problem& one) {
  if (!one.phases.empty()) return one.phases;
  return {{PhaseKind::train, 0, one.microbatches}};
}

// All copies of a phase follow each other, then those of the next.
Microbatch in_copy(const Phase& phase, Microbatch microbatch, int copy, int copies) {
  return phase.first * copies + copy * phase.count + (microbatch - phase.first);
}

void repeat_factors(std::vector<double>& factors, const std::vector<Phase>& phases, int copies) {
  if (factors.empty()) return;
  const std::vector<double> one = std::exchange(factors, {});
  for (const Phase& phase : phases) {
    for (int copy = 0; copy < copies; ++copy) {
      factors.insert(factors.end(), one.begin() + phase.first,
                     one.begin() + phase.first + phase.count);
    }
  }
}

MicrobatchFactors repeated(MicrobatchFactors factors, const std::vector<Phase>& phases,
                           int copies) {
  for (auto* kind :
       {&factors.forward, &factors.backward_input, &factors.backward_weight, &factors.activation}) {
    repeat_factors(*kind, phases, copies);
  }
  return factors;
}

}  // namespace

Problem in_copies(Problem one) {
  const int copies = data_parallel(one);
  if (copies == 1 || one.placement.copies() > 1) return one;
  const std::vector<Phase> phases = phases_of(one);
  one.links = one.links.in_copies(copies);
  one.placement = Placement(one.placement, copies);
  one.microbatches *= copies;
  for (Phase& phase : one.phases) {
    phase.first *= copies;
    phase.count *= copies;
  }
  one.costs =
      Costs(one.costs.stages(), repeated(one.costs.factors(), phases, copies), one.costs.pairs());
  repeat(one.limits.bytes, copies);
  repeat(one.limits.activations, copies);
  repeat(one.limits.static_memory, copies);
  return one;
}

Schedule in_copies(const Problem& one, Schedule schedule) {
  const int copies = data_parallel(one);
  if (copies == 1) return schedule;
  const std::vector<Phase> phases = phases_of(one);
  const auto moved = [&](Op op, int copy) {
    if (op.kind == OpKind::none) return op;
    op.microbatch = in_copy(phases[one.phase_of(op.microbatch)], op.microbatch, copy, copies);
    op.replica = static_cast<std::uint8_t>(op.replica + copy * one.placement.directions());
    return op;
  };
  const std::size_t ranks = schedule.ranks.size();
  schedule.ranks.reserve(ranks * static_cast<std::size_t>(copies));
  for (int copy = 1; copy < copies; ++copy) {
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      auto& slots = schedule.ranks.emplace_back(schedule.ranks[rank]);
      for (Slot& slot : slots) slot = {moved(slot.first, copy), moved(slot.second, copy)};
    }
  }
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    for (Slot& slot : schedule.ranks[rank]) slot = {moved(slot.first, 0), moved(slot.second, 0)};
  }
  return schedule;
}

}  // namespace counterflow
