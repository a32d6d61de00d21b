#include "driver/robust_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "driver/plan.h"
#include "scheduler/bounds/lower_bound.h"
#include "scheduler/error.h"
#include "scheduler/passes/compile.h"
#include "scheduler/search/alternatives.h"
#include "scheduler/search/expected_costs.h"
#include "simulator/monte_carlo.h"

namespace counterflow {
namespace {

constexpr double kP95 = 0.95;

// Enough for a p95, fewer where a run takes milliseconds.
int suitable_trials(const Problem& problem, const Jitter& jitter) {
  if (!varies(jitter)) return 1;
  constexpr std::int64_t kOps = 200'000;
  const std::int64_t ops = 3 * std::int64_t{problem.stages()} * problem.microbatches;
  return static_cast<int>(std::clamp<std::int64_t>(kOps / std::max<std::int64_t>(ops, 1), 40, 200));
}

std::vector<Alternative> alternatives(const Problem& problem, const Jitter& jitter,
                                      const Scenario& scenario) {
  std::vector<Alternative> all;
  auto expected = with_expected_costs(problem, jitter, scenario, lower_bound(problem));
  const Problem& base = expected ? *expected : problem;
  for (const int deviations : {1, 2, 4}) {
    auto later = with_late_messages(base, jitter, deviations);
    if (!later) break;
    all.push_back({std::move(*later), fmt::format("messages {} deviation{} late", deviations,
                                                  deviations > 1 ? "s" : "")});
  }
  if (expected) all.insert(all.begin(), {std::move(*expected), "expected costs"});
  return all;
}

Robustness::Figures figures(const Plan& plan, const Schedule& schedule, Time makespan,
                            const Jitter& jitter, const Scenario& scenario,
                            const TrialOptions& options) {
  const Trials trials = run_trials(compile(plan.problem, schedule), plan.problem.links,
                                   plan.config.execution, jitter, options, scenario);
  return {makespan, mean(trials.makespans), trials.p95};
}

}  // namespace

RobustSearch robust_search(const Plan& plan, std::span<const Schedule> seeds,
                           const SearchBudget& budget, const RobustGoal& goal) {
  if (!goal.scenario.failures.empty()) {
    throw InputError(fmt::format(
        "rank {} fails in the scenario, and a run in which a rank fails never ends, whatever the "
        "order; a search takes slow and outages, so leave failures out",
        goal.scenario.failures.front().rank));
  }
  const Jitter jitter = plan.config.jitter.value_or(Jitter{});
  const int trials = goal.trials > 0 ? goal.trials : suitable_trials(plan.problem, jitter);
  const std::uint64_t seed = goal.seed.value_or(jitter.seed);
  const SearchObjective objective = makespan_under(
      plan.problem, plan.config.execution, jitter, goal.scenario,
      {.quantile = goal.p95 ? std::optional(kP95) : std::nullopt, .trials = trials, .seed = seed});
  RobustSearch found;
  found.result =
      search_alternatives(plan.problem, alternatives(plan.problem, jitter, goal.scenario), seeds,
                          budget, objective, goal.threads);
  const SearchResult& result = found.result;
  if (result.objective == Time::max()) {
    throw InfeasibleError(
        "no order comes to its end under these disturbances; simulate --scenario shows what stops "
        "one: an outage without an end, or the execution model");
  }
  const TrialOptions options{
      .trials = trials, .seed = seed, .threads = goal.threads, .sensitivity = false};
  const auto measured = [&](const Schedule& schedule, Time makespan) {
    return figures(plan, schedule, makespan, jitter, goal.scenario, options);
  };
  found.robustness = {.goal = goal.p95 ? "p95" : "mean",
                      .scenario = goal.scenario_name,
                      .trials = trials,
                      .seed = seed,
                      .chosen = measured(result.schedule, result.makespan),
                      .fastest = measured(result.fastest, result.best_makespan)};
  return found;
}

}  // namespace counterflow
