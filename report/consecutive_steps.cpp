#include "report/consecutive_steps.h"

#include <algorithm>
#include <cstddef>
#include <optional>

namespace counterflow {
namespace {

bool counts(const Op& op) {
  return op.kind == OpKind::forward || is_backward(op.kind);
}

}  // namespace

ConsecutiveSteps measure_steps(const Program& program, const Timeline& timeline, int steps) {
  ConsecutiveSteps result;
  result.steps = steps;
  const int microbatches = program.microbatches / steps;
  std::vector<Time> ends(static_cast<std::size_t>(steps));
  std::optional<Time> first;
  for (std::size_t r = 0; r < program.ranks.size(); ++r) {
    const auto& instructions = program.ranks[r].instructions;
    for (std::size_t i = 0; i < instructions.size(); ++i) {
      if (instructions[i].kind != InstructionKind::run || !counts(instructions[i].op)) continue;
      const Interval when = timeline.ranks[r].instructions[i];
      Time& end = ends[static_cast<std::size_t>(instructions[i].op.microbatch / microbatches)];
      end = std::max(end, when.end);
      first = std::min(first.value_or(when.begin), when.begin);
    }
    Bytes& peak = result.peak_memory.emplace_back();
    for (const MemorySample& sample : timeline.ranks[r].memory) peak = std::max(peak, sample.held);
  }
  result.makespan = ends.back() - first.value_or(Time{0});
  const std::size_t half = (ends.size() - 1) / 2;
  result.step = (ends.back() - ends[half]) / static_cast<int>(ends.size() - 1 - half);
  return result;
}

}  // namespace counterflow
