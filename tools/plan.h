#pragma once

#include <optional>
#include <string>
#include <string_view>
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
  const Family* family = nullptr;    // nullptr: the schedule is a file
  std::optional<ScheduleFile> file;  // where the schedule is one
  // How the schedule was chosen, what of the config is not used, what looks like a mistake.
  std::vector<std::string> notes;

  // Does the file say where each transfer stands? Else communication is inferred.
  [[nodiscard]] bool brings_communication() const { return file && file->has_communication; }
};

// Reads the config with its overrides and resolves the schedule: a family's order, the fastest
// family for `auto`, or a .csv file. Throws InputError, and InfeasibleError where `auto` finds
// none.
[[nodiscard]] Plan make_plan(const Options& options);

// Is this schedule a file rather than a name?
[[nodiscard]] bool is_schedule_file(std::string_view schedule);
// What to say of a name that is no schedule: the likely one, or all there are.
[[nodiscard]] std::string unknown_schedule(std::string_view name);

}  // namespace counterflow
