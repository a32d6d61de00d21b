#pragma once

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "scheduler/problem/keeping.h"
#include "scheduler/problem/problem.h"
#include "tests/support/random_problems.h"

// Problems whose stages may recompute or offload.
namespace counterflow::testing {

// Offers ways to some stages that have a backward and an activation of two bytes at least: moves as
// long as up to `longest`.
inline void offer_keeping(Problem& problem, std::mt19937_64& random, std::int64_t longest) {
  problem.keeping_options.assign(static_cast<std::size_t>(problem.stages()), {});
  for (Stage s = 0; s < problem.stages(); ++s) {
    const auto stage = static_cast<std::size_t>(s);
    const std::int64_t all = problem.memory[stage].activation.value;
    if (all < 2 || !problem.needs_backward_input(s) || draw(random, 0, 3) == 0) continue;
    for (const KeepingKind kind : {KeepingKind::recompute, KeepingKind::offload}) {
      if (draw(random, 0, 2) == 0) continue;
      Keeping way{.kind = kind,
                  .restore = Time(draw(random, 0, longest)),
                  .kept = Bytes{draw(random, 0, all - 1)}};
      if (kind == KeepingKind::offload) way.store = way.restore;
      problem.keeping_options[stage].push_back(way);
    }
  }
}

// Each stage takes one of its ways, or none.
inline Problem any_choice(Problem problem, std::mt19937_64& random) {
  std::vector<Keeping> keeping(static_cast<std::size_t>(problem.stages()));
  for (std::size_t s = 0; s < keeping.size(); ++s) {
    const auto& options = problem.keeping_options[s];
    const std::int64_t which = draw(random, 0, std::ssize(options));
    if (which > 0) keeping[s] = options[static_cast<std::size_t>(which - 1)];
  }
  return with_keeping(std::move(problem), std::move(keeping));
}

// All choices of a problem with few.
inline std::vector<Problem> all_choices(const Problem& problem) {
  std::vector<std::vector<Keeping>> found{{}};
  for (std::size_t s = 0; s < static_cast<std::size_t>(problem.stages()); ++s) {
    std::vector<std::vector<Keeping>> longer;
    for (const std::vector<Keeping>& each : found) {
      std::vector<Keeping> ways = problem.keeping_options[s];
      ways.push_back({});
      for (const Keeping& way : ways) {
        longer.push_back(each);
        longer.back().push_back(way);
      }
    }
    found = std::move(longer);
  }
  std::vector<Problem> problems;
  for (std::vector<Keeping>& each : found) {
    problems.push_back(with_keeping(problem, std::move(each)));
  }
  return problems;
}

}  // namespace counterflow::testing
