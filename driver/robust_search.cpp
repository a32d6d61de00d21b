#include "driver/robust_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "driver/plan.h"
#include "scheduler/bounds/lower_bound.h"
#include "scheduler/error.h"
#include "scheduler/passes/compile.h"
#include "scheduler/search/alternatives.h"
#include "scheduler/search/choices.h"
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

// What is disturbed, and how orders are judged under that.
struct Judging {
  const ExecutionModel& execution;
  Jitter jitter;
  const RobustGoal& goal;
  int trials = 1;
  std::uint64_t seed = 0;

  [[nodiscard]] SearchObjective objective(const Problem& problem) const {
    return makespan_under(problem, execution, jitter, goal.scenario,
                          {.quantile = goal.p95 ? std::optional(kP95) : std::nullopt,
                           .trials = trials,
                           .seed = seed});
  }
  [[nodiscard]] Robustness::Figures figures(const Problem& problem, const Schedule& schedule,
                                            Time makespan) const {
    const TrialOptions options{
        .trials = trials, .seed = seed, .threads = goal.threads, .sensitivity = false};
    const Trials found = run_trials(compile(problem, schedule), problem.links, execution, jitter,
                                    options, goal.scenario);
    return {makespan, mean(found.makespans), found.p95};
  }
};

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
  const Judging judging{
      .execution = plan.config.execution,
      .jitter = jitter,
      .goal = goal,
      .trials = goal.trials > 0 ? goal.trials : suitable_trials(plan.problem, jitter),
      .seed = goal.seed.value_or(jitter.seed)};
  const GoalSearch search_on = [&](const Problem& problem, std::span<const Schedule> its,
                                   const SearchBudget& share) {
    return search_alternatives(problem, alternatives(problem, jitter, goal.scenario), its, share,
                               judging.objective(problem), goal.threads);
  };
  ChosenSearch chosen = search_choices_by(plan.problem, seeds, budget, search_on);
  const SearchResult& result = chosen.result;
  if (result.objective == Time::max()) {
    throw InfeasibleError(
        "no order comes to its end under these disturbances; simulate --scenario shows what stops "
        "one: an outage without an end, or the execution model");
  }
  RobustSearch found;
  found.robustness = {.goal = goal.p95 ? "p95" : "mean",
                      .scenario = goal.scenario_name,
                      .trials = judging.trials,
                      .seed = judging.seed,
                      .chosen = judging.figures(chosen.problem, result.schedule, result.makespan),
                      .fastest = {}};
  found.robustness.fastest = result.schedule.ranks == result.fastest.ranks
                                 ? found.robustness.chosen  // trials may take as long as the search
                                 : judging.figures(with_keeping_of(plan.problem, result.fastest),
                                                   result.fastest, result.best_makespan);
  found.keeping = std::move(chosen.problem.keeping);
  found.result = std::move(chosen.result);
  return found;
}

}  // namespace counterflow
