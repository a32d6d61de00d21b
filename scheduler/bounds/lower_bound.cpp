#include "scheduler/bounds/lower_bound.h"

#include <algorithm>
#include <cstddef>

#include "scheduler/bounds/area.h"
#include "scheduler/bounds/closed.h"
#include "scheduler/bounds/jackson.h"
#include "scheduler/bounds/lines.h"
#include "scheduler/bounds/memory_waits.h"
#include "scheduler/bounds/windows.h"

namespace counterflow {
namespace {

std::size_t op_count(const Problem& problem) {
  return 3 * static_cast<std::size_t>(problem.stages()) *
         static_cast<std::size_t>(problem.microbatches);
}

void raise(LowerBound& best, std::int64_t value, std::string_view argument) {
  if (Time{value} > best.value) best = {Time{value}, argument};
}

// Whatever holds for one phase holds for all of them, and the closed form adds them up.
LowerBound bound_of_phases(const Problem& problem, BoundEffort effort) {
  LowerBound best{closed_bound(problem), "closed"};
  for (const Phase& phase : problem.phases) {
    const LowerBound alone = best_lower_bound(problem.only(phase), effort);
    raise(best, alone.value.count(), alone.argument);
  }
  return best;
}

}  // namespace

// Without the ops that bring activations back, and with no more memory held than is kept between F
// and the backward at any time, every order of the problem is one that begins and ends no later. So
// what bounds that bounds this; the closed form counts the ops themselves.
Problem without_moves(const Problem& problem) {
  Problem lighter = with_keeping(problem, {});
  for (Stage stage = 0; stage < problem.stages(); ++stage) {
    const Keeping keeping = problem.keeping_of(stage);
    if (keeping.kind == KeepingKind::all) continue;
    StageMemory& memory = lighter.memory[static_cast<std::size_t>(stage)];
    memory = {keeping.kept, std::min(keeping.kept, memory.kept_for_weight)};
  }
  return lighter;
}

bool pairs_may_save(const Problem& problem) {
  const PairCosts& pairs = problem.costs.pairs();
  if (pairs.empty() || problem.forward_only) return false;
  if (!problem.costs.uniform()) return true;  // by rounding alone
  for (Rank rank = 0; rank < problem.ranks(); ++rank) {
    for (const Chunk& one : problem.placement.chunks_of(rank)) {
      for (const Chunk& other : problem.placement.chunks_of(rank)) {
        const StageCost& f = problem.costs.stages()[static_cast<std::size_t>(one.stage)];
        const StageCost& b = problem.costs.stages()[static_cast<std::size_t>(other.stage)];
        const Time pair = pairs.find(one.stage, other.stage);
        if (pair >= Time{0} && pair < f.forward + b.backward_input + b.backward_weight) return true;
      }
    }
  }
  return false;
}

LowerBound best_lower_bound(const Problem& problem, BoundEffort effort) {
  if (!problem.phases.empty()) return bound_of_phases(problem, effort);
  if (!problem.keeping.empty()) {
    LowerBound best{closed_bound(problem), "closed"};
    const LowerBound lighter = best_lower_bound(without_moves(problem), effort);
    raise(best, lighter.value.count(), lighter.argument);
    return best;
  }
  LowerBound best{closed_bound(problem), "closed"};
  if (problem.microbatches == 0 || pairs_may_save(problem)) return best;
  const bool quick = effort == BoundEffort::quick;
  if (quick && op_count(problem) > kQuickAreaOps) return best;
  Lines lines(problem);
  if (lines.uniform()) add_memory_waits(problem, lines);
  const Windows windows = longest_paths(lines);
  raise(best, area_bound(problem, lines, windows), "area");
  if (quick && lines.ops() > kQuickJacksonOps) return best;
  raise(best, jackson_bound(lines, windows), "jackson");
  if (!quick && lines.ops() <= kWindowOps) {
    raise(best, window_bound(problem, lines, best.value.count()), "windows");
  }
  return best;
}

}  // namespace counterflow
