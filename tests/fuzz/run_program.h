#pragma once

#include "scheduler/ir/program.h"
#include "scheduler/problem/problem.h"

namespace counterflow::fuzz {

// Verifies and simulates a program under every rule there is, and draws what comes out. Requires
// that a program without faults runs to its end exactly under the semantics for which it is said
// to.
void run_program(const Problem& problem, const Program& program);

// Lowers an order without faults: the program must verify and run under every semantics, and its
// text must read back.
void run_order(const Problem& problem, const Schedule& schedule);

// A chain of stages with equal costs and a byte of everything.
[[nodiscard]] Problem plain_problem(const Placement& placement, int microbatches);

}  // namespace counterflow::fuzz
