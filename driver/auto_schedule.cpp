#include "driver/auto_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>

#include "scheduler/error.h"
#include "scheduler/graph/evaluate.h"
#include "scheduler/search/choices.h"
#include "scheduler/verify/verify.h"

namespace counterflow {
namespace {

bool same_map(const Placement& a, const Placement& b) {
  if (a.stages() != b.stages() || a.replicas() != b.replicas()) return false;
  for (int replica = 0; replica < a.replicas(); ++replica) {
    for (Stage stage = 0; stage < a.stages(); ++stage) {
      if (a.rank_of(stage, replica) != b.rank_of(stage, replica)) return false;
    }
  }
  return true;
}

std::optional<Schedule> generated(const Family& family, const Problem& problem) {
  if (family.forward_only != problem.forward_only) return std::nullopt;
  if (!takes_map(family, problem.placement)) return std::nullopt;
  try {
    return generate(family, problem);
  } catch (const InputError&) {
    return std::nullopt;  // a shape this family does not take
  }
}

}  // namespace

bool takes_map(const Family& family, const Placement& placement) {
  if (placement.stages() % placement.ranks() != 0) return false;
  try {
    const int chunks = placement.stages() / placement.ranks();
    return same_map(Placement(family.placement, placement.ranks(), chunks), placement);
  } catch (const std::invalid_argument&) {
    return false;  // a kind that does not exist for these numbers
  }
}

AutoChoice choose_schedule(const Problem& problem) {
  Evaluator evaluator(problem);
  AutoChoice best;
  Time best_makespan{0};
  int fitting = 0;
  for (const Family& family : families()) {
    std::optional<Schedule> schedule = generated(family, problem);
    if (!schedule || !verify(problem, *schedule).empty()) continue;
    ++fitting;
    const Time makespan = evaluator.makespan(*schedule);
    if (best.family != nullptr && makespan >= best_makespan) continue;
    best = {.family = &family,
            .schedule = std::move(*schedule),
            .keeping = problem.keeping,
            .note = {}};
    best_makespan = makespan;
  }
  if (best.family == nullptr) {
    SearchBudget budget;
    budget.iterations = 2'000;
    ChosenSearch found = search_choices(problem, {}, budget);
    best.schedule = std::move(found.result.schedule);
    best.keeping = std::move(found.problem.keeping);
    best.note =
        "schedule auto: no family fits this placement and these limits, so a short search made the "
        "order; `counterflow search` looks longer";
    return best;
  }
  best.note = fitting == 1
                  ? fmt::format("schedule auto: {} is the only family that fits", best.family->name)
                  : fmt::format(
                        "schedule auto: {} is the fastest of the {} families "
                        "that fit",
                        best.family->name, fitting);
  return best;
}

std::vector<Schedule> family_schedules(const Problem& problem, std::optional<Deadline> deadline) {
  std::vector<const Family*> order;
  for (const Family& family : families()) order.push_back(&family);
  if (deadline) {
    // Not its namesake of ranges: clang 14 cannot make what that returns.
    std::stable_partition(order.begin(), order.end(),
                          [](const Family* family) { return family->splits_backward; });
  }
  std::vector<Schedule> schedules;
  for (const Family* family : order) {
    if (deadline && !schedules.empty() && Deadline::clock::now() >= *deadline) break;
    if (auto schedule = generated(*family, problem)) schedules.push_back(std::move(*schedule));
  }
  return schedules;
}

}  // namespace counterflow
