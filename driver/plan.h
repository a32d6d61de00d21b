#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/bounds/lower_bound.h"
#include "scheduler/ir/placement.h"
#include "scheduler/ir/schedule.h"
#include "scheduler/ir/schedule_file.h"
#include "scheduler/problem/config.h"
#include "scheduler/problem/copies.h"
#include "scheduler/problem/problem.h"
#include "schedules/family.h"

namespace counterflow {

// A problem and the schedule chosen for it; not verified yet. Both are of one pipeline: where the
// optimizer is data-parallel, the program is of all its copies (in_copies).
struct Plan {
  Config config;
  Problem problem;
  Schedule schedule;
  const Family* family = nullptr;     // nullptr: the schedule is a file, or was searched for
  std::optional<ScheduleFile> file;   // where the schedule is one
  std::vector<std::string> notes;     // how the schedule was chosen
  std::vector<std::string> warnings;  // what of the config is not used, what looks like a mistake
  LowerBound proven;                  // what a search proved; 0ns: nothing

  // The problem of the program: of all copies of the pipeline. O(size of it).
  [[nodiscard]] Problem whole() const { return in_copies(problem); }
  // Does the file say where each transfer stands? Else communication is inferred.
  [[nodiscard]] bool brings_communication() const { return file && file->has_communication; }
};

// Resolves the schedule a config names: a family's order, for `auto` the fastest family (else what
// a short search finds), or a .csv file, whose path starts at `folder`. Throws InputError, and
// InfeasibleError where `auto` finds none.
[[nodiscard]] Plan make_plan(Config config, const std::filesystem::path& folder);

// The problem of a config whose schedule no family here makes: on the config's placement, else on
// `placement`, with `chunks` stages a rank where the config does not say. Throws InputError.
[[nodiscard]] Problem make_problem(const Config& config, PlacementKind placement, int chunks,
                                   bool forward_only);

// The problem of a config whose schedule is `auto`, or is searched for: on its placement, which it
// must give. Throws InputError.
[[nodiscard]] Problem make_problem_on_placement(const Config& config, bool forward_only = false);

// The microbatches of each phase that trains; of the whole run where there are no phases.
[[nodiscard]] std::vector<int> trained_microbatches(const Config& config);

// Is this schedule a file rather than a name?
[[nodiscard]] bool is_schedule_file(std::string_view schedule);
// What to say of a name that is no schedule: the likely one, or all there are.
[[nodiscard]] std::string unknown_schedule(std::string_view name);

}  // namespace counterflow
