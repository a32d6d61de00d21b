#pragma once

#include <span>
#include <string>
#include <string_view>

#include "report/drawing.h"

// Several runs side by side: of one config under several schedules, or of files.
namespace counterflow {

struct NamedRun {
  std::string name;
  Drawing drawing;
};

// One self-contained page: the timelines under one another on one time axis, each from its first
// op, and a table of their figures.
[[nodiscard]] std::string compare_html(std::span<const NamedRun> runs);

// The figures as a table for a terminal: one line a run, makespans also relative to the first.
// Ranks (devices), stages, and stages a rank (copies whose parameters the fullest rank holds) are
// columns of their own, as is what a step takes: of consecutive steps what one more adds, else a
// whole step with its optimizer, if it has one.
[[nodiscard]] std::string compare_table(std::span<const NamedRun> runs);
// The same as JSON: {"schema_version", "runs": [{"name", "ranks", "stages", "stages_per_rank",
// "relative_makespan", "step_ns" where there is one, "report"}]}.
[[nodiscard]] std::string compare_json(std::span<const NamedRun> runs);

}  // namespace counterflow
