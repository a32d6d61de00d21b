#include "driver/auto_schedule.h"

#include <fmt/format.h>

#include <optional>
#include <stdexcept>

#include "scheduler/graph/evaluate.h"
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

bool fits_placement(const Family& family, const Placement& wanted) {
  if (family.forward_only || wanted.stages() % wanted.ranks() != 0) return false;
  try {
    return same_map(Placement(family.placement, wanted.ranks(), wanted.stages() / wanted.ranks()),
                    wanted);
  } catch (const std::invalid_argument&) {
    return false;  // a kind that does not exist for these numbers
  }
}

std::optional<Schedule> generated(const Family& family, const Problem& problem) {
  if (!fits_placement(family, problem.placement)) return std::nullopt;
  try {
    return generate(family, problem);
  } catch (const InputError&) {
    return std::nullopt;  // a shape this family does not take
  }
}

}  // namespace

AutoChoice choose_schedule(const Problem& problem, const SourceLocation& asked_at) {
  Evaluator evaluator(problem);
  AutoChoice best;
  Time best_makespan{0};
  int fitting = 0;
  std::string objection;
  for (const Family& family : families()) {
    std::optional<Schedule> schedule = generated(family, problem);
    if (!schedule) continue;
    const Diagnostics faults = verify(problem, *schedule);
    if (!faults.empty()) {
      if (objection.empty()) objection = fmt::format("{}: {}", family.name, faults.front().message);
      continue;
    }
    ++fitting;
    const Time makespan = evaluator.makespan(*schedule);
    if (best.family != nullptr && makespan >= best_makespan) continue;
    best = {.family = &family, .schedule = std::move(*schedule), .note = {}};
    best_makespan = makespan;
  }
  if (best.family == nullptr && !objection.empty()) {
    throw InfeasibleError("schedule auto: no family that takes this shape is within the limits; " +
                          objection);
  }
  if (best.family == nullptr) {
    throw InputError(asked_at, fmt::format("schedule auto: no family takes placement {} with {} "
                                           "stages on {} ranks and {} microbatches; `counterflow "
                                           "schedules` lists what each one takes",
                                           name(problem.placement.kind()), problem.stages(),
                                           problem.ranks(), problem.microbatches));
  }
  best.note = fitting == 1
                  ? fmt::format("schedule auto: {} is the only family that fits", best.family->name)
                  : fmt::format(
                        "schedule auto: {} is the fastest of the {} families "
                        "that fit",
                        best.family->name, fitting);
  return best;
}

}  // namespace counterflow
