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
  Diagnostics diagnostics;  // faults, and deadlocks under the semantics asked for
  // All three, whatever was asked; empty if the program is so malformed that it has no meaning.
  std::vector<SemanticsVerdict> semantics;
};

// Every fault of a program: of its order of compute (but for cycles, which show as deadlocks) and
// of its communication. O(instructions).
[[nodiscard]] ProgramVerdict verify(const Problem& problem, const Program& program,
                                    std::span<const Semantics> asked = kAllSemantics);

// The second half, for a program whose computes were judged where they came from: indices that
// point nowhere, sends and receives that do not match (channel, number, payload, size), groups too
// large, collectives in different orders, data used before it is surely there, and deadlock, as a
// printed cycle, under each of `asked`. Its computes must be in range. O(instructions).
[[nodiscard]] ProgramVerdict verify_communication(const Problem& problem, const Program& program,
                                                  std::span<const Semantics> asked = kAllSemantics);

// What a program shows by itself where its problem is not at hand: the form, that the ends of every
// message mean the same, groups, the order of collectives, that nothing races, and no deadlock
// under any of `asked`. Whether it does all its problem asks for it cannot tell. O(instructions).
[[nodiscard]] ProgramVerdict verify_alone(const Program& program,
                                          std::span<const Semantics> asked = kAllSemantics);

}  // namespace counterflow
