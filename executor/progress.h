#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "executor/backend.h"
#include "scheduler/graph/matching.h"
#include "scheduler/graph/prerequisites.h"
#include "scheduler/ir/program.h"

namespace counterflow::exec {

// How far each instruction of a step has come, for whoever asks why it does not go on.
struct Progress {
  std::function<bool(Prerequisites::Index)> begun;
  std::function<bool(Prerequisites::Index)> ended;
};

// The first instruction, rank after rank in issue order, that has begun and cannot end, or else
// that cannot begin: what it is, what it waits for, and what the other end is doing. A step that is
// stuck always has one.
[[nodiscard]] Failure why_stuck(const Program& program, const Matching& matching,
                                const Prerequisites& prerequisites, const Progress& progress,
                                int step);

}  // namespace counterflow::exec
