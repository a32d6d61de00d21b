#include "schedules/adapt.h"

#include <algorithm>

namespace counterflow {
namespace {

// What each stage's backward amounts to.
struct StageNeeds {
  bool input = true;
  bool weight = true;
};

std::vector<StageNeeds> needs_of(const Problem& problem) {
  std::vector<StageNeeds> needs;
  for (Stage s = 0; s < problem.stages(); ++s) {
    needs.push_back({problem.needs_backward_input(s), problem.needs_backward_weight(s)});
  }
  return needs;
}

// The op as far as it is needed; kind none if it is not.
Op needed(Op op, const std::vector<StageNeeds>& needs) {
  const StageNeeds& stage = needs[op.stage];
  if (op.kind == OpKind::backward && !stage.weight) op.kind = OpKind::backward_input;
  if (op.kind == OpKind::backward_input && !stage.input) return {};
  if (op.kind == OpKind::backward_weight && !stage.weight) return {};
  return op;
}

}  // namespace

Schedule adapt(Schedule schedule, const Problem& problem) {
  const std::vector<StageNeeds> needs = needs_of(problem);
  const bool split = problem.split_backward == SplitBackward::split;
  const bool all_needed = std::all_of(needs.begin(), needs.end(), [](const StageNeeds& stage) {
    return stage.input && stage.weight;
  });
  if (all_needed && !split) return schedule;
  for (auto& order : schedule.ranks) {
    std::vector<Slot> adapted;
    adapted.reserve(order.size());
    for (const Slot& slot : order) {
      const Op first = needed(slot.first, needs);
      const Op second = slot.is_pair() ? needed(slot.second, needs) : Op{};
      if (first.kind == OpKind::none) continue;
      if (split && first.kind == OpKind::backward) {
        Op part = first;
        part.kind = OpKind::backward_input;
        adapted.push_back({part, {}});
        part.kind = OpKind::backward_weight;
        adapted.push_back({part, {}});
      } else {
        adapted.push_back({first, second});
      }
    }
    order = std::move(adapted);
  }
  return schedule;
}

}  // namespace counterflow
