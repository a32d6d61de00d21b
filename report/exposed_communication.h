#pragma once

#include <cstddef>

#include "scheduler/graph/matching.h"
#include "scheduler/ir/program.h"
#include "scheduler/ir/timeline.h"

namespace counterflow {

// How long a rank's compute stood still for messages that were on their way, gathers of parameters
// included. In each gap before an op that waits for receives, the part that overlaps [begin of the
// matching send, end of the receive] of the receive that ended last; of a gather likewise. The op
// waits through events, or through its own stream where the receive was issued there.
// O(instructions of the rank).
[[nodiscard]] Time exposed_communication(const Program& program, const Timeline& timeline,
                                         const Matching& matching, std::size_t rank);

}  // namespace counterflow
