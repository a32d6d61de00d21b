#pragma once

#include "scheduler/ir/program.h"
#include "scheduler/problem/problem.h"

namespace counterflow {

// A complete program so many times in a row, as the one program of in_steps(problem): each rank's
// lists follow each other, so a rank goes on to the next step without asking where the others are.
// Slots, events and channels are the same ones in every step; versions, generations and numbers run
// on, and whoever takes a slot over waits for its last users in the step before. VALIDATE moves
// into the next step: to before the first op there of its copy of the stage.
//
// It completes wherever the program of one step does: the steps' global sequences (see
// insert_transfers) one behind the other are one again, and new waits point backwards in it.
// verify() on the problem of these steps proves the rest; all pairs of neighbours are alike, so
// what holds for three steps holds for any number. Throws as in_steps(problem) does. O(steps * n).
[[nodiscard]] Program in_steps(const Problem& one, const Program& program, int steps);

}  // namespace counterflow
