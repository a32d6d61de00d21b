#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "scheduler/ir/program.h"
#include "scheduler/ir/timeline.h"

namespace counterflow {

// Where and in which order a trace shows instructions. Viewers nest the slices of a track: of two
// that overlap, one must lie inside the other. Transfers that run independently of their stream
// overlap as they like, so a stream has as many tracks as it runs instructions at once.
struct TraceLayout {
  struct Slice {
    std::uint32_t rank = 0;
    std::uint32_t instruction = 0;
    std::uint32_t track = 0;  // of its rank
    Interval when;
  };

  // [rank][track]: "compute", "send to 3", "receive from 1", "receive from 1 (2)"; ordered by
  // stream, at least one a stream.
  std::vector<std::vector<std::string>> tracks;
  // What ran, by its begin; of what begins together, sends before receives, and of those the empty
  // ones last, so that a send mostly stands before its receive.
  std::vector<Slice> slices;
};

// O(n log n).
[[nodiscard]] TraceLayout lay_out_trace(const Program& program, const Timeline& timeline);

}  // namespace counterflow
