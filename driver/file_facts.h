#pragma once

#include <optional>

#include "scheduler/ir/placement.h"
#include "scheduler/ir/schedule_file.h"
#include "scheduler/problem/config.h"
#include "scheduler/problem/problem.h"

// What a schedule file says about the problem it was made for.
namespace counterflow {

// Stages a rank, read off the highest stage the file names. O(actions).
[[nodiscard]] int chunks_in(const ScheduleFile& file, int ranks, PlacementKind kind);

// A named placement on which every compute of the file stands on a rank that holds its stage, if
// there is one: loop before v, wave and bidirectional.
[[nodiscard]] std::optional<PlacementKind> likely_placement(const ScheduleFile& file);
// Does it compute or send anything, and nothing of a backward? O(actions).
[[nodiscard]] bool is_forward_only(const ScheduleFile& file);
// Throws InputError, with the first op concerned, where the config's split_backward asks for
// another cut of the backward than the file has. O(actions).
void check_split(const Config& config, const Problem& problem, const ScheduleFile& file);

}  // namespace counterflow
