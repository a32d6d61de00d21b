#pragma once

#include <span>
#include <string>
#include <vector>

#include "scheduler/ir/diagnostic.h"
#include "scheduler/ir/execution_model.h"
#include "scheduler/ir/program.h"
#include "scheduler/ir/schedule.h"
#include "scheduler/ir/schedule_file.h"
#include "scheduler/problem/problem.h"

namespace counterflow {

// Every fault of an order of compute: each required op exactly once and on its rank, F before I
// before W on each stage, no op the problem does not ask for, no cycle across ranks, memory within
// the limits. Empty: a valid schedule. O(ops).
[[nodiscard]] Diagnostics verify(const Problem& problem, const Schedule& schedule);

// The same for a file, its communication included as far as one action alone can be judged (every
// stage, replica and microbatch in range and on its rank), and its stage actions. Positions count
// all actions of a row. A file whose faults are none of "range" and "rank" may be imported.
[[nodiscard]] Diagnostics verify(const Problem& problem, const ScheduleFile& file);

// What is legal in a file but looks like a mistake: a stage that is never resharded. One line each.
[[nodiscard]] std::vector<std::string> advice(const ScheduleFile& file);

struct SemanticsVerdict {
  Semantics semantics = Semantics::buffered;
  bool completes = false;
};

struct ProgramVerdict {
  Diagnostics diagnostics;                  // faults, and deadlocks under the semantics asked for
  std::vector<SemanticsVerdict> semantics;  // all three, whatever was asked
};

// Every fault of a program: sends and receives that do not match (channel, payload, size), data
// used before it is there, and deadlock, as a printed cycle, under each of `asked`.
// O(instructions).
[[nodiscard]] ProgramVerdict verify(const Problem& problem, const Program& program,
                                    std::span<const Semantics> asked = kAllSemantics);

}  // namespace counterflow
