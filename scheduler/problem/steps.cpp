#include "scheduler/problem/steps.h"

#include <fmt/format.h>

#include <vector>

#include "scheduler/error.h"

namespace counterflow {
namespace {

void repeat(std::vector<double>& factors, int steps) {
  const std::vector<double> one = factors;
  for (int step = 1; step < steps; ++step) factors.insert(factors.end(), one.begin(), one.end());
}

// The phases of one step; a single one where it has none.
std::vector<Phase> phases_of(const Problem& one) {
  if (!one.phases.empty()) return one.phases;
  return {{one.forward_only ? PhaseKind::eval : PhaseKind::train, 0, one.microbatches}};
}

}  // namespace

Problem in_steps(Problem one, int steps) {
  if (steps == 1) return one;
  if (std::int64_t{steps} * one.microbatches > kMaxMicrobatches) {
    throw InfeasibleError(fmt::format(
        "{} steps of {} microbatches have {}; at most {} are possible, so take fewer "
        "steps",
        steps, one.microbatches, std::int64_t{steps} * one.microbatches, kMaxMicrobatches));
  }
  const std::vector<Phase> phases = phases_of(one);
  one.phases.clear();
  for (int step = 0; step < steps; ++step) {
    for (Phase phase : phases) {
      phase.first += step * one.microbatches;
      one.phases.push_back(phase);
    }
  }
  MicrobatchFactors factors = one.costs.factors();
  for (auto* kind :
       {&factors.forward, &factors.backward_input, &factors.backward_weight, &factors.activation}) {
    repeat(*kind, steps);
  }
  one.costs = Costs(one.costs.stages(), factors, one.costs.pairs());
  one.steps = steps;
  one.microbatches *= steps;
  return one;
}

}  // namespace counterflow
