#pragma once

#include "scheduler/problem/problem.h"

// Consecutive steps of training: ranks begin one as soon as they are done with the one before, and
// nobody waits for all.
namespace counterflow {

// The problem of so many steps of a problem of one: microbatch i of step k is i + k * microbatches,
// and the phases of all steps follow each other. Throws InfeasibleError where the microbatches are
// more than there can be. O(steps * microbatches).
[[nodiscard]] Problem in_steps(Problem one, int steps);

}  // namespace counterflow
