#pragma once

#include <optional>
#include <vector>

#include "scheduler/ir/schedule.h"
#include "schedules/family.h"

// The eight phases that DualPipe and DualPipeV share: two streams of microbatches through a rank,
// the forward of one fused with the backward of the other.
namespace counterflow {

// One of the two streams, as a rank sees it.
struct PhaseStream {
  Stage stage = 0;
  int replica = 0;
  Microbatch first = 0;  // its microbatches are first .. first+count-1
  int count = 0;
};

struct PhaseRank {
  int half = 0;      // ranks between the entry of a stream and the turning point: p/2, or p for a V
  int distance = 0;  // of this rank from the near entry, 0..half-1
  PhaseStream near;  // the stream that enters at the near end
  PhaseStream far;
};

// The rank's order. The phases are made for at least 2*half microbatches a stream and as many in
// one as in the other; microbatches a stream does not have are left out, which keeps the order of
// the rest legal: no microbatch waits for another. O(ops).
[[nodiscard]] std::vector<Slot> dualpipe_order(const PhaseRank& rank);

// The published idle time for `half`, where its condition holds; `microbatches` are those of a
// stream.
[[nodiscard]] std::optional<Formula> dualpipe_formula(const Problem& problem, int half,
                                                      int microbatches);

}  // namespace counterflow
