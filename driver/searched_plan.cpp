#include "driver/searched_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
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
#include "schedules/registry.h"
#include "simulator/monte_carlo.h"

namespace counterflow {
namespace {

class Stopwatch {
 public:
  [[nodiscard]] Deadline begin() const { return begin_; }
  [[nodiscard]] Time elapsed() const {
    return std::chrono::duration_cast<Time>(Deadline::clock::now() - begin_);
  }

 private:
  Deadline begin_ = Deadline::clock::now();
};

std::size_t ops_of(const Problem& problem) {
  return 3 * static_cast<std::size_t>(problem.stages()) *
         static_cast<std::size_t>(problem.microbatches);
}

// Does the config ask for forwards alone on a placement that the family of forwards does not take?
// A search orders them on any.
bool orders_forwards(const Config& config) {
  const Family* family = find_family(config.schedule.value);
  return family != nullptr && family->forward_only && config.placement &&
         config.placement->value.kind != family->placement;
}

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

// Is the schedule faultless where every stage keeps the least it can?
bool fits_with_least_kept(const Plan& plan) {
  const Problem least = with_least_kept(plan.problem);
  return verify(least, seeds_for(least, {&plan.schedule, 1}).front()).empty();
}

// A search takes only faultless orders as seeds, and whoever names one thinks that it was.
std::optional<std::string> why_no_start(const Plan& plan) {
  const Diagnostics faults = verify(plan.problem, plan.schedule);
  if (faults.empty() || fits_with_least_kept(plan)) return std::nullopt;
  return fmt::format("search: {} is not what it starts from, for it has {} fault{}: {}",
                     plan.config.schedule.value, faults.size(), faults.size() == 1 ? "" : "s",
                     to_line(faults.front()));
}

// "500 schedules tried", and how it comes that they are more than were asked for.
std::string tries(const SearchResult& result, const SearchBudget& budget) {
  std::string text =
      fmt::format("{} schedule{} tried", result.iterations, result.iterations == 1 ? "" : "s");
  if (budget.time || budget.iterations == 0) return text;
  if (result.searches > 1) {
    return text + fmt::format(" by {} searches, each with all of the budget", result.searches);
  }
  if (result.iterations > budget.iterations) {
    text += fmt::format(", more than {}, for no order was found before", budget.iterations);
  }
  return text;
}

// What it takes to seek the full bound once the search is over, about. A search in time has sought
// that of a large problem already, if there was time for it.
Time time_of_full_bound(const Problem& problem) {
  const std::size_t ops = ops_of(problem);
  if (ops > kWindowOps) return Time::max();
  constexpr Time kSquare{160};  // nanoseconds for each op and op
  const auto choices = static_cast<std::int64_t>(count_choices(problem, kFewChoices));
  const std::int64_t each = choices <= static_cast<std::int64_t>(kFewChoices) ? choices : 1;
  return kSquare * static_cast<std::int64_t>(ops * ops) * each;
}

std::string outcome(const SearchedPlan& searched, const SearchBudget& budget) {
  const SearchGoal goal = budget.goal;
  const bool in_time = budget.time.has_value();
  const Time bound = searched.plan.proven.value;
  const SearchResult& result = searched.result;
  std::string text = fmt::format("search: found by {}, {}", result.found_by, tries(result, budget));
  if (in_time) text += fmt::format(" in {}, with the seeds", readable_time(searched.took));
  if (searched.robustness) return text + "; best at the goal of those found, with no bound on it";
  if (result.makespan <= bound) text += "; proven optimal for this placement and these limits";
  if (goal != SearchGoal::span) return text;
  text += fmt::format("; the longest span of a rank is {}", readable_time(result.span));
  if (result.span <= result.span_bound) return text + ", proven least";
  return text + fmt::format(", none below {} exists", readable_time(result.span_bound));
}

// The plan of a config before its order is found, and the order that the config names, if any.
Plan plan_to_search(Config config, const std::filesystem::path& folder,
                    std::vector<Schedule>& seeds) {
  Plan plan;
  if (config.phases && (config.phases->value.size() > 1 || !config.phases->value[0].trains())) {
    throw InputError(config.phases->where,
                     "pipeline.phases: a search orders a single pass; leave one phase that trains, "
                     "leave phases out and take schedule: forward-only for one that does not, or "
                     "name a schedule family and compile that");
  }
  if (const bool forwards = orders_forwards(config); forwards || config.schedule.value == "auto") {
    plan.problem = make_problem_on_placement(config, forwards);
    plan.config = std::move(config);
  } else {
    plan = make_plan(std::move(config), folder);
    if (auto why = why_no_start(plan)) plan.warnings.push_back(std::move(*why));
    seeds.push_back(std::move(plan.schedule));
    plan.family = nullptr;
    plan.file.reset();
  }
  return plan;
}

// The full bound where the budget has room for it, else a note that says which has.
void prove(SearchedPlan& searched, Time proof, bool has_room) {
  Plan& plan = searched.plan;
  if (searched.result.is_optimal()) return;
  if (has_room) {
    const LowerBound full = lower_bound_of_choices(plan.problem, BoundEffort::full);
    if (full.value > plan.proven.value) plan.proven = full;
  } else if (ops_of(plan.problem) <= kWindowOps) {
    plan.notes.push_back(
        fmt::format("search: the bound is a quick one; the full one takes about {} more, for which "
                    "--budget {}ms has room",
                    readable_time(proof), 3 * proof / std::chrono::milliseconds(1) + 1));
  }
}

}  // namespace

SearchedPlan searched_plan(Config config, const std::filesystem::path& folder,
                           const SearchBudget& whole, const std::optional<RobustGoal>& robust) {
  const Stopwatch watch;
  SearchedPlan searched;
  std::vector<Schedule> seeds;
  searched.plan = plan_to_search(std::move(config), folder, seeds);
  Plan& plan = searched.plan;
  const auto deadline =
      whole.time ? std::optional(watch.begin() + *whole.time / 2) : std::optional<Deadline>{};
  for (Schedule& family : family_schedules(plan.problem, deadline)) {
    seeds.push_back(std::move(family));
  }
  SearchBudget budget = whole;
  if (budget.time) budget.time = std::max(Time{1}, *budget.time - watch.elapsed());
  const Time proof = time_of_full_bound(plan.problem);
  const bool proves = !budget.time || proof <= std::min(*whole.time, *budget.time) / 2;
  if (budget.time && proves) *budget.time -= proof;
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
  plan.proven = {searched.result.lower_bound, searched.result.bound_argument};
  prove(searched, proof, proves);
  plan.problem = with_keeping(std::move(plan.problem), std::move(keeping));
  searched.took = watch.elapsed();
  plan.notes.push_back(outcome(searched, budget));
  return searched;
}

}  // namespace counterflow
