#pragma once

#include <span>

#include "scheduler/graph/matching.h"
#include "scheduler/ir/diagnostic.h"
#include "scheduler/ir/execution_model.h"
#include "scheduler/ir/program.h"
#include "scheduler/ir/schedule.h"
#include "scheduler/ir/schedule_file.h"
#include "scheduler/problem/problem.h"
#include "scheduler/verify/references.h"

// The rules, one file each. Each appends what it finds to `out`. Rules of a schedule but `range`
// rely on ops that are in range.
namespace counterflow::rules {

// One row a rank; every op of a stage, replica and microbatch the problem has, on the rank that
// holds the stage.
void range(const Problem& problem, const Schedule& schedule, Diagnostics& out);
void range(const Problem& problem, const ScheduleFile& file, Diagnostics& out);

// Each required op exactly once, none that is not required.
void complete(const Problem& problem, const Schedule& schedule, Diagnostics& out);

// On its rank, F of a stage and microbatch stands before its backward, I before W, and each before
// what it feeds there.
void order(const Problem& problem, const Schedule& schedule, Diagnostics& out);

// On its rank, every op of a phase stands before every op of a later one.
void phase(const Problem& problem, const Schedule& schedule, Diagnostics& out);

// No cycle across ranks.
void acyclic(const Problem& problem, const Schedule& schedule, Diagnostics& out);

// UNSHARD, RESHARD and REDUCE_GRAD where a file has them: no compute on a sharded stage, one
// reduction a stage at most and none before the last gradient it reduces.
void stage_actions(const ScheduleFile& file, Diagnostics& out);

// What each rank holds stays within its limits. The order alone decides: a rank allocates when an
// op begins and frees when it ends, so no times are needed.
void memory(const Problem& problem, const Schedule& schedule, Diagnostics& out);

// Every index of a program points at something, every transfer belongs to one instruction, every
// instruction runs its own kernel. The other rules of a program rely on it.
void form(const Problem& problem, const Program& program, Diagnostics& out);
// The same as far as a program shows it by itself.
void form(const Program& program, Diagnostics& out);

// Every message the stage graph asks for between ranks is sent once and received once, numbered by
// its place on its channel, and the two ends that meet mean the same.
void matching(const Problem& problem, const Program& program, const References& references,
              Diagnostics& out);
// The same but for what the stage graph asks for.
void matching(const Program& program, const References& references, Diagnostics& out);

// No activation meets the receive of a gradient, nor the other way round: of one send and the
// receive it meets.
void crossing(const Program& program, const References& references, Matching::End send,
              Diagnostics& out);

// Groups that NCCL keeps whole: at most eight transfers, one a peer and direction.
void group(const Program& program, Diagnostics& out);

// The same collectives in the same order on all members of a communicator, and on ranks that share
// several communicators.
void collective_order(const Program& program, Diagnostics& out);

// Nothing waits for an event that is recorded later in its rank's issue order, and whatever an
// instruction reads was made by one that has surely ended.
void dataflow(const Problem& problem, const Program& program, const References& references,
              Diagnostics& out);

// Buffers, where they are assigned: every run names what its ops use, every transfer where it
// leaves from or arrives; in issue order whoever reads finds the version and the very value it
// needs, whoever writes makes the version after the last; slots are large enough and share no byte.
// O(accesses).
void buffers(const Problem& problem, const Program& program, Diagnostics& out);

// What follows the last gradient, where the problem has an optimizer: every sum that several ranks
// share is added up by exactly those, all of them for the same, and every stage that trains makes
// one step, and validates it where the problem asks for that. Relies on `buffers`. O(instructions).
void reductions(const Problem& problem, const Program& program, Diagnostics& out);

// The parameters of a copy of a stage, where the problem has an optimizer: STEP follows every op of
// its step, VALIDATE the STEP, and every op of the next step both; a stream or an event says so.
// Relies on computes in range. O(instructions).
void parameters(const Problem& problem, const Program& program, const References& references,
                Diagnostics& out);

// What STEP keeps until VALIDATE fits beside everything else within the limits. Issue order alone
// decides. O(instructions).
void snapshots(const Problem& problem, const Program& program, Diagnostics& out);

// Parameters, where they are sharded: every unit is gathered by exactly the ranks that have its
// shards, all of them the same one, and not before the compute that stands before it has ended.
// Relies on `buffers`. O(instructions * streams).
void sharding(const Problem& problem, const Program& program, const References& references,
              Diagnostics& out);

// What each rank of a program holds stays within its limit, in issue order, whole parameters and
// gradients included. Says nothing where parameters are not sharded: the order has said it all.
// O(instructions).
void memory(const Problem& problem, const Program& program, Diagnostics& out);

// No two uses of a buffer slot of which one writes, unless an event or a stream of runs orders
// them, and no two collectives of a communicator that neither an event nor their stream orders.
// O((accesses + collectives) * streams).
void races(const Program& program, const References& references, Diagnostics& out);

// Does the program complete for every timing under these semantics? One cycle if not. A blocked
// transfer stalls its stream.
[[nodiscard]] bool completes(const Program& program, const References& references,
                             Semantics semantics);
void deadlock(const Program& program, const References& references, Semantics semantics,
              Diagnostics& out);

}  // namespace counterflow::rules
