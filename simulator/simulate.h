#pragma once

#include "scheduler/ir/diagnostic.h"
#include "scheduler/ir/execution_model.h"
#include "scheduler/ir/program.h"
#include "scheduler/ir/timeline.h"
#include "scheduler/problem/links.h"
#include "scheduler/problem/scenario.h"

namespace counterflow {

struct Simulation {
  Timeline timeline;        // of what ran; an instruction that never ran is [-1, -1)
  Diagnostics diagnostics;  // empty: the program ran to its end; else the cycle it is stuck in
};

// Runs a program in virtual time: in-order streams, events, matched transfers over the links, under
// the rules of the execution model. Deterministic. O(n log n) with bandwidth, O(n) without.
[[nodiscard]] Simulation simulate(const Program& program, const Links& links,
                                  const ExecutionModel& execution);
// The same while things go wrong. A scenario of nothing changes nothing.
[[nodiscard]] Simulation simulate(const Program& program, const Links& links,
                                  const ExecutionModel& execution, const Scenario& scenario);

}  // namespace counterflow
