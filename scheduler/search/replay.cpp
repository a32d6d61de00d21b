#include "scheduler/search/replay.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "scheduler/bounds/lower_bound.h"
#include "scheduler/search/decoder.h"

namespace counterflow {

Problem with_microbatches(const Problem& problem, int microbatches) {
  Problem smaller = problem;
  smaller.microbatches = microbatches;
  if (problem.costs.uniform()) return smaller;
  // The first of each direction: the second direction begins elsewhere in the smaller problem.
  MicrobatchFactors factors = problem.costs.factors();
  const auto cut = [&](std::vector<double>& list) {
    if (list.empty()) return;
    std::vector<double> kept;
    const int shift = (problem.microbatches + 1) / 2 - (microbatches + 1) / 2;
    for (Microbatch mb = 0; mb < microbatches; ++mb) {
      const int from = smaller.replica_of(mb) == 0 ? mb : mb + shift;
      kept.push_back(list[static_cast<std::size_t>(from)]);
    }
    list = std::move(kept);
  };
  cut(factors.forward);
  cut(factors.backward_input);
  cut(factors.backward_weight);
  cut(factors.activation);
  smaller.costs = Costs(problem.costs.stages(), std::move(factors), problem.costs.pairs());
  return smaller;
}

int ranking_microbatches(const Problem& problem) {
  const int enough = 2 * problem.ranks();
  return problem.microbatches >= 3 * enough / 2 ? enough : problem.microbatches;
}

std::vector<PriorityRule> ranked(const Problem& smaller, bool for_span,
                                 const std::vector<PriorityRule>& rules, BudgetMeter& meter,
                                 double until,
                                 const std::function<bool(const PriorityRule&)>& better) {
  const std::int64_t bound = for_span ? 0 : lower_bound(smaller).count();
  Decoder decoder(smaller, for_span);
  std::vector<std::pair<std::int64_t, PriorityRule>> tried;
  std::int64_t best = SearchModel::kUnlimited;
  for (const PriorityRule& rule : rules) {
    if (meter.share() >= until) break;
    meter.spend();
    // Far from the best here is far from it there.
    const std::int64_t cutoff = best >= SearchModel::kUnlimited ? best : best + best / 20 + 1;
    const std::int64_t makespan = decoder.decode(rule, cutoff);
    if (makespan < 0) continue;
    tried.emplace_back(makespan, rule);
    if (makespan >= best) continue;
    best = makespan;
    if (better(rule) || best <= bound) break;
  }
  std::ranges::stable_sort(tried, {}, [](const auto& each) { return each.first; });
  std::vector<PriorityRule> result;
  std::int64_t last = -1;
  for (const auto& [makespan, rule] : tried) {
    // Equal makespans are mostly equal schedules.
    if (makespan == last && result.size() > 4) continue;
    result.push_back(rule);
    last = makespan;
  }
  return result;
}

}  // namespace counterflow
