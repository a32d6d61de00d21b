#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/graph/sharded_parameters.h"
#include "scheduler/ir/program.h"
#include "scheduler/passes/reduction_order.h"
#include "scheduler/problem/problem.h"

namespace counterflow {

// A while for which a stage is unsharded: all ranks that hold it gather it together, each frees it
// after its last use in that time.
struct UnshardedStay {
  static constexpr std::uint32_t kNoUse = kNone;
  struct LastUse {
    std::uint32_t run = kNoUse;  // of the rank, counted as RunTimes does
    Time end{0};
  };

  Stage stage = 0;
  Time at{0};                 // the place of the gather in the global sequence
  Time needed{0};             // the first use on any rank
  Time until{0};              // the end of the last
  std::vector<LastUse> last;  // [number of the holder]
};

// The stays of a program, in the order in which every rank goes through its own: which stage is
// gathered when, by the policy of Optimizer::sharding. On a rank a stage stays while its computes
// follow each other, nothing of another stage between them, and is to be gathered when the compute
// begins that stands `prefetch` computes ahead of the first; so early in the step there is none,
// before all else. What overlaps on different ranks is one stay, and so are two of which the second
// is to be gathered before the first is over. O(n log n).
[[nodiscard]] std::vector<UnshardedStay> unsharded_stays(const Problem& problem,
                                                         const Program& program,
                                                         const RunTimes& times,
                                                         const ShardedParameters& parameters);

}  // namespace counterflow
