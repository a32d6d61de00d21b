#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "scheduler/passes/compile.h"
#include "schedules/registry.h"
#include "tests/support/problems.h"

// Lowered programs to run, and their instructions by name.
namespace counterflow::testing {

[[nodiscard]] inline Program one_forward_one_backward(int ranks, int microbatches) {
  const Family& family = *find_family("1f1b");
  const Problem problem = family_problem(family, ranks, 1, microbatches);
  return compile(problem, generate(family, problem));
}

// The first instruction of a rank that a schedule file would call so.
[[nodiscard]] inline std::uint32_t find(const Program& program, std::size_t rank, const Op& op) {
  const auto& list = program.ranks[rank].instructions;
  for (std::uint32_t i = 0; i < list.size(); ++i) {
    if (list[i].op == op) return i;
  }
  throw std::logic_error("no such instruction");
}

}  // namespace counterflow::testing
