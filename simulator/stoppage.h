#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scheduler/ir/execution_model.h"
#include "scheduler/ir/op.h"
#include "scheduler/ir/program.h"
#include "scheduler/ir/timeline.h"
#include "scheduler/problem/scenario.h"

namespace counterflow {

// Where a run that did not come to its end stands still.
struct Stoppage {
  // The first instruction of a rank, in issue order, that did not end.
  struct Blocked {
    Rank rank = 0;
    std::uint32_t index = 0;
    Op op;
    Time since{0};        // when it waited for nothing else of its rank, or the rank failed
    bool failed = false;  // the rank itself
    std::string reason;   // what it waits for
  };
  struct OfRank {
    std::size_t finished = 0;
    std::size_t instructions = 0;
  };
  Time last_progress{0};         // nothing ended later
  std::vector<OfRank> ranks;     // [rank]
  std::vector<Blocked> blocked;  // failed ranks first, then by time; one a rank that did not end
};

// Reads it off the timeline of a run under this scenario. O(instructions).
[[nodiscard]] Stoppage explain_stop(const Program& program, const Timeline& timeline,
                                    const Scenario& scenario);

}  // namespace counterflow
