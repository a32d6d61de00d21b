#pragma once

#include "scheduler/ir/program.h"
#include "scheduler/ir/schedule.h"
#include "scheduler/ir/schedule_file.h"
#include "scheduler/problem/problem.h"

// The passes, one function and one file each. All but the first take a Program and return the next.
namespace counterflow {

// Schedule -> Program: each slot becomes a `run` on the rank's one compute stream, with its kernel.
// O(ops).
[[nodiscard]] Program lower_compute(const Problem& problem, const Schedule& schedule);

// The same for a file that has its communication: transfers and groups as they stand, everything of
// a rank on one stream. O(actions).
[[nodiscard]] Program lower_file(const Problem& problem, const ScheduleFile& file);

// Adds every send and receive the stage graph asks for between ranks. All ranks' lists become
// restrictions of one global sequence of computes and transfers in which every input comes before
// its use, so the program completes under every semantics and on any streams. Throws
// InfeasibleError if the order of compute itself does not complete. O(n log n).
[[nodiscard]] Program insert_transfers(const Problem& problem, Program program);

// One communicator for activations, one for gradients; numbers the messages of each channel. O(n).
[[nodiscard]] Program assign_communicators(const Problem& problem, Program program);

// Each (peer, direction) of a rank gets a transfer stream of its own. O(n).
[[nodiscard]] Program assign_streams(const Problem& problem, Program program);

// A send waits for the compute that makes its payload, a compute for the receives of its inputs.
// O(n).
[[nodiscard]] Program insert_events(const Problem& problem, Program program);

}  // namespace counterflow
