#pragma once

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "scheduler/problem/problem.h"
#include "tests/support/random_problems.h"

namespace counterflow::testing {

// The problem with its microbatches shared out over these phases.
inline void set_phases(Problem& problem, const std::vector<std::pair<PhaseKind, int>>& phases) {
  problem.phases.clear();
  problem.microbatches = 0;
  for (const auto& [kind, count] : phases) {
    problem.phases.push_back({kind, problem.microbatches, count});
    problem.microbatches += count;
  }
  problem.forward_only = std::ranges::none_of(problem.phases, &Phase::trains);
}

// Phases of random kinds and lengths over the microbatches there are; none that trains where the
// problem only goes forward.
inline void draw_phases(Problem& problem, std::mt19937_64& random) {
  std::vector<std::pair<PhaseKind, int>> phases;
  for (int left = problem.microbatches; left > 0;) {
    const auto count = static_cast<int>(draw(random, 1, left));
    const auto first = static_cast<std::int64_t>(problem.forward_only ? 1 : 0);
    phases.emplace_back(kPhaseKinds[static_cast<std::size_t>(draw(random, first, 2))], count);
    left -= count;
  }
  set_phases(problem, phases);
}

}  // namespace counterflow::testing
