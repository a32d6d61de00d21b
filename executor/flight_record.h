#pragma once

#include <string>

#include "executor/backend.h"
#include "scheduler/graph/matching.h"
#include "scheduler/ir/program.h"

namespace counterflow::exec {

// What the flight records of a run are called: this, and the rank.
inline constexpr const char* kFlightRecordPrefix = "flight_record_";

// What a rank has posted of a step that stopped, as PyTorch's flight recorder dumps it: a pickle of
// version 2.10 that torchfrtrace reads. A process group is a channel (communicator, source,
// destination), for its tools match by sequence in a group, or a communicator where collectives
// are; sizes count elements. An entry is a transfer or collective that has begun, its stack frame
// the instruction. What PyTorch has no place for stands under the key "counterflow": the program,
// the failure, what runs, and the first of what has not begun. O(instructions log instructions).
[[nodiscard]] std::string flight_record(const Program& program, const Matching& matching, Rank rank,
                                        const RankProgress& progress, const Failure& failure);

}  // namespace counterflow::exec
