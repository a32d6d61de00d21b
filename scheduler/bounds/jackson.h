#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/bounds/lines.h"

namespace counterflow {

// One op of a one-machine problem: it cannot begin before `head`, and `tail` passes after its end.
struct MachineOp {
  std::int64_t head = 0;
  std::int64_t duration = 0;
  std::int64_t tail = 0;
};

// The shortest makespan of these ops on one machine if they may be interrupted: always run the
// available op with the longest tail (J. R. Jackson, 1955; Carlier, 1982). No order without
// interruption is shorter. `ops` is sorted by head. O(n log n).
[[nodiscard]] std::int64_t jackson_preemptive(std::vector<MachineOp>& ops);

// The largest over the ranks, with heads and tails along the longest ways: any schedule of the
// problem is, rank by rank, a schedule of such a machine. O(ops log ops).
[[nodiscard]] std::int64_t jackson_bound(const Lines& lines, const Windows& windows);

}  // namespace counterflow
