#pragma once

#include <vector>

#include "scheduler/ir/units.h"

namespace counterflow {

// Half-open: [begin, end).
struct Interval {
  Time begin{0};
  Time end{0};
  [[nodiscard]] constexpr Time length() const { return end - begin; }
  friend constexpr bool operator==(const Interval&, const Interval&) = default;
};

// From this instant on, the rank holds `held` bytes (static memory included).
struct MemorySample {
  Time at{0};
  Bytes held;
  friend constexpr bool operator==(const MemorySample&, const MemorySample&) = default;
};

struct RankTimeline {
  std::vector<Interval> instructions;  // [index in RankProgram::instructions]
  std::vector<MemorySample> memory;    // ascending in time, one sample an instant
  friend bool operator==(const RankTimeline&, const RankTimeline&) = default;
};

// When every instruction of a Program began and ended: what a simulation predicts and a run
// measures, in one form.
struct Timeline {
  std::vector<RankTimeline> ranks;
  friend bool operator==(const Timeline&, const Timeline&) = default;
};

}  // namespace counterflow
