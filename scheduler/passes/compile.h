#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "scheduler/ir/program.h"
#include "scheduler/ir/schedule.h"
#include "scheduler/ir/schedule_file.h"
#include "scheduler/problem/problem.h"

namespace counterflow {

// One step of lowering: takes a program, returns the next one.
struct Pass {
  std::string_view name;
  Program (*run)(const Problem&, Program);
};

// The passes in order, from bare compute to a complete program.
[[nodiscard]] std::span<const Pass> passes();

// Called after each pass, for --dump-passes.
using PassObserver = std::function<void(std::string_view pass, const Program& after, Time took)>;

// Lowers a schedule of compute: infers all communication and everything else a Program says. The
// result is free of deadlock under every semantics if the schedule completes at all. Throws
// InfeasibleError if the schedule itself deadlocks or an op lacks its input. O(n log p).
[[nodiscard]] Program compile(const Problem& problem, const Schedule& schedule,
                              const PassObserver& observer = {});

// Takes a schedule file that already has its communication as it stands: everything of a rank on
// one stream, so that a blocked transfer stalls the rank. The result may be faulty; verify() says
// so.
[[nodiscard]] Program import(const Problem& problem, const ScheduleFile& file,
                             const PassObserver& observer = {});

}  // namespace counterflow
