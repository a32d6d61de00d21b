#include "scheduler/bounds/held_memory.h"

#include <cstddef>

namespace counterflow {
namespace {

HeldMemory on_rank(const Problem& problem, Rank rank, std::int64_t limit, bool count) {
  HeldMemory held{.rank = rank, .limit = limit, .parts = {}, .passing = {}, .factors = {}};
  if (!count) held.factors = problem.costs.factors().activation;
  for (const Chunk& chunk : problem.placement.chunks_of(rank)) {
    const StageMemory& memory = problem.memory[static_cast<std::size_t>(chunk.stage)];
    const bool weight = problem.needs_backward_weight(chunk.stage);
    const std::int64_t whole = count ? 1 : memory.activation.value;
    const std::int64_t kept = count ? 1 : memory.kept_for_weight.value;
    if (problem.needs_backward_input(chunk.stage)) {
      held.parts.push_back({chunk, whole, weight ? kept : 0});
    } else {
      held.passing.push_back({chunk, whole, 0});
    }
  }
  return held;
}

}  // namespace

std::vector<HeldMemory> held_memory(const Problem& problem) {
  std::vector<HeldMemory> result;
  const MemoryLimits& limits = problem.limits;
  for (Rank rank = 0; rank < problem.ranks(); ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    if (!limits.bytes.empty()) {
      const std::int64_t fixed = limits.static_memory.empty() ? 0 : limits.static_memory[r].value;
      result.push_back(on_rank(problem, rank, limits.bytes[r].value - fixed, false));
    }
    if (!limits.activations.empty()) {
      result.push_back(on_rank(problem, rank, limits.activations[r], true));
    }
  }
  return result;
}

}  // namespace counterflow
