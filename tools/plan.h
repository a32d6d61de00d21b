#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scheduler/ir/schedule.h"
#include "scheduler/ir/schedule_file.h"
#include "scheduler/problem/config.h"
#include "scheduler/problem/problem.h"
#include "schedules/family.h"
#include "tools/options.h"

namespace counterflow {

// A problem and the schedule chosen for it; not verified yet.
struct Plan {
  Config config;
  Problem problem;
  Schedule schedule;
  const Family* family = nullptr;             // nullptr: the schedule is a file
  std::optional<ScheduleFile> communication;  // of a file that brings its own
  std::vector<std::string> notes;  // how the schedule was chosen, where that needs saying
};

// Reads the config with its overrides and resolves the schedule: a family's order, the fastest
// family for `auto`, or a .csv file. Throws InputError, and InfeasibleError where `auto` finds
// none.
[[nodiscard]] Plan make_plan(const Options& options);

// How many stages a rank the config asks for: its own number, or `otherwise`.
[[nodiscard]] int chunks_of(const Config& config, int otherwise);
// The placement the config gives, else `kind`, with so many stages a rank. Throws InputError.
[[nodiscard]] Placement placement_of(const Config& config, PlacementKind kind, int chunks);

}  // namespace counterflow
