#include "driver/searched_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "driver/auto_schedule.h"
#include "report/format.h"
#include "scheduler/bounds/lower_bound.h"
#include "scheduler/ir/diagnostic_text.h"
#include "scheduler/search/choices.h"
#include "scheduler/verify/verify.h"
#include "simulator/monte_carlo.h"

namespace counterflow {
namespace {

// A search takes each message for the only one on its way. Where messages share links, what it ends
// with is run to see which is the fastest.
ChosenSearch search_for_makespan(const Plan& plan, std::span<const Schedule> seeds,
                                 const SearchBudget& budget) {
  const Problem& problem = plan.problem;
  if (problem.links.topology() == nullptr || budget.goal != SearchGoal::makespan) {
    return search_choices(problem, seeds, budget);
  }
  ChosenSearch found = search_choices_by(
      problem, seeds, budget,
      [&](const Problem& chosen, std::span<const Schedule> its, const SearchBudget& share) {
        return search(chosen, its, share,
                      makespan_under(chosen, plan.config.execution, {}, {}, DisturbedMakespan{}));
      });
  found.result.makespan = found.result.objective;
  return found;
}

// A search takes only faultless orders as seeds, and whoever names one thinks that it was.
std::optional<std::string> why_no_start(const Plan& plan) {
  const Diagnostics faults = verify(plan.problem, plan.schedule);
  if (faults.empty()) return std::nullopt;
  return fmt::format("search: {} is not what it starts from, for it has {} fault{}: {}",
                     plan.config.schedule.value, faults.size(), faults.size() == 1 ? "" : "s",
                     to_line(faults.front()));
}

std::string outcome(const SearchedPlan& searched, SearchGoal goal, Time bound) {
  const SearchResult& result = searched.result;
  std::string text =
      fmt::format("search: found by {}, {} schedules tried", result.found_by, result.iterations);
  if (searched.robustness) return text + "; best at the goal of those found, with no bound on it";
  if (result.makespan <= bound) text += "; proven optimal for this placement and these limits";
  if (goal != SearchGoal::span) return text;
  text += fmt::format("; the longest span of a rank is {}", readable_time(result.span));
  if (result.span <= result.span_bound) return text + ", proven least";
  return text + fmt::format(", none below {} exists", readable_time(result.span_bound));
}

}  // namespace

SearchedPlan searched_plan(Config config, const std::filesystem::path& folder,
                           const SearchBudget& budget, const std::optional<RobustGoal>& robust) {
  SearchedPlan searched;
  Plan& plan = searched.plan;
  std::vector<Schedule> seeds;
  if (config.phases && (config.phases->value.size() > 1 || !config.phases->value[0].trains())) {
    throw InputError(config.phases->where,
                     "pipeline.phases: a search orders a single pass to train; leave one such "
                     "phase, or name a schedule family and compile that");
  }
  if (config.schedule.value == "auto") {
    plan.problem = make_problem_on_placement(config);
    plan.config = std::move(config);
  } else {
    plan = make_plan(std::move(config), folder);
    if (auto why = why_no_start(plan)) plan.notes.push_back(std::move(*why));
    seeds.push_back(std::move(plan.schedule));
    plan.family = nullptr;
    plan.file.reset();
  }
  for (Schedule& family : family_schedules(plan.problem)) seeds.push_back(std::move(family));
  std::vector<Keeping> keeping = plan.problem.keeping;
  if (robust) {
    RobustSearch found = robust_search(plan, seeds, budget, *robust);
    searched.result = std::move(found.result);
    searched.robustness = std::move(found.robustness);
    keeping = std::move(found.keeping);
  } else {
    ChosenSearch found = search_for_makespan(plan, seeds, budget);
    searched.result = std::move(found.result);
    keeping = std::move(found.problem.keeping);
  }
  plan.schedule = searched.result.schedule;
  plan.proven_bound = searched.result.lower_bound;
  if (!searched.result.is_optimal()) {
    plan.proven_bound =
        std::max(plan.proven_bound, lower_bound_of_choices(plan.problem, BoundEffort::full));
  }
  plan.problem = with_keeping(std::move(plan.problem), std::move(keeping));
  plan.notes.push_back(outcome(searched, budget.goal, plan.proven_bound));
  return searched;
}

}  // namespace counterflow
