#pragma once

#include "scheduler/ir/execution_model.h"
#include "scheduler/ir/program.h"
#include "scheduler/verify/references.h"

namespace counterflow {

// Runs a program without times: every stream as far as it goes, until nothing goes on. Nothing is
// chosen at run time, so what gets to its end in one order does in every order. Does all of it? The
// same as a WaitGraph without cycle in which nothing starves, without building the graph.
// O(instructions * streams of a rank) at worst, mostly O(instructions).
[[nodiscard]] bool runs_through(const Program& program, const References& references,
                                Semantics semantics);

}  // namespace counterflow
