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
// One for both, as a file means that names none and has no tags. O(n).
[[nodiscard]] Program assign_one_communicator(const Problem& problem, Program program);

// Each (peer, direction) of a rank gets a transfer stream of its own. O(n).
[[nodiscard]] Program assign_streams(const Problem& problem, Program program);

// A send waits for the compute that makes its payload, a compute for the receives of its inputs.
// O(n).
[[nodiscard]] Program insert_events(const Problem& problem, Program program);

// Every message, everything saved for a backward and every sum of weight gradients gets a buffer
// slot; runs name the versions they read and write, transfers where they leave from or arrive. A
// slot is used again once its last reader has ended by the schedule's own timing, so a rank holds
// as many as there are values alive at once, whatever the number of microbatches, and nothing is
// delayed; whoever takes it over waits for that reader. The waits point backwards in issue order,
// so what insert_transfers proves still holds. O(n log slots).
[[nodiscard]] Program assign_buffers(const Problem& problem, Program program);

// The same, each value in a slot of its own: for an order of transfers that is not ours, where a
// wait more could be one too many.
[[nodiscard]] Program assign_own_buffers(const Problem& problem, Program program);

// Messages travel as the problem compresses them: transfers get their type and their size on the
// wire, slots stay as large as what is in them. O(transfers).
[[nodiscard]] Program compress_messages(const Problem& problem, Program program);

// What follows the last gradient, where the problem has an optimizer: each sum of weight gradients
// that several ranks share is reduced on a stream of its own once the last of them is ready, beside
// what still runs; then, if asked for, the norm of all gradients; then a step a stage, which
// waits for the norm, or is validated once it is known. Adds communicators, streams, events and
// uses of buffers for them. O(n + sums log sums).
[[nodiscard]] Program insert_optimizer(const Problem& problem, Program program);

// Where parameters are sharded: each stage is gathered before its ranks need it, on a stream of its
// own (UNSHARD), and freed after (RESHARD), by the policy of Optimizer::sharding; computes read the
// slots that were gathered, which stages share one after the other, and steps write the shards.
// What it allocates and frees, the whole gradients too, is counted with its kernels. O(n log n).
[[nodiscard]] Program insert_sharding(const Problem& problem, Program program);

// Takes out every wait for something that another wait, or the order of a compute stream, implies
// already. O(n * streams).
[[nodiscard]] Program thin_waits(const Problem& problem, Program program);

}  // namespace counterflow
