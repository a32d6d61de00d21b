#pragma once

#include <cstdint>

#include "scheduler/ir/program.h"
#include "scheduler/ir/timeline.h"

namespace counterflow {

// The most stage-microbatches a rank holds at once.
struct HeldPeaks {
  std::int64_t activations = 0;  // from the begin of F to the end of B, or of the later of I and W
  std::int64_t in_flight = 0;    // ... to the end of I or B
};

// Counts one rank. A stage the program has no W for releases at I, one without any backward at the
// end of F; what ends at an instant is released before what begins at it. O(instructions).
[[nodiscard]] HeldPeaks held_peaks(const RankProgram& rank, const RankTimeline& timeline);

}  // namespace counterflow
