#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/consecutive_steps.h"
#include "scheduler/ir/program.h"
#include "scheduler/ir/timeline.h"
#include "scheduler/ir/trials.h"
#include "scheduler/problem/problem.h"

namespace counterflow {

struct RankReport {
  Time busy{0};         // union of the compute streams' intervals
  Time idle{0};         // makespan - busy
  Time first_start{0};  // of compute
  Time last_end{0};
  std::int64_t peak_activations =
      0;  // stage-microbatches from begin of F to end of B, or of both I, W
  std::int64_t peak_in_flight = 0;  // ... to end of I or B
  Bytes peak_memory;
  Time comm_exposed{0};  // time the rank waited for a message that was on its way
  int stages_held = 0;   // copies of stages whose parameters the rank holds
};

// The figures of one run, predicted or measured. See docs/report.md for each definition.
struct Report {
  std::string schedule;
  int ranks = 0;
  int stages = 0;
  int microbatches = 0;
  std::string execution;
  Time makespan{0};
  Time span{0};
  double bubble_fraction = 0;
  double span_bubble_fraction = 0;
  Time lower_bound{0};
  std::string bound_argument;  // what proves it (docs/search.md); "": nothing is known of that
  double gap = 0;              // makespan / lower_bound - 1
  // From the first op to the end of the last optimizer step, where there is one.
  std::optional<Time> step;
  std::optional<Time> formula_idle;
  std::string formula_source;
  std::vector<Stage> recompute, offload;  // stages that do so, ascending
  std::vector<std::string> notes;         // how the schedule was chosen
  std::vector<std::string> warnings;      // what to change
  std::vector<RankReport> per_rank;
  std::optional<ConsecutiveSteps> consecutive;  // where several steps were run without a barrier
  std::optional<Trials> trials;                 // where the program was also run under jitter
  std::optional<Robustness> robustness;  // where the order was searched for to stand disturbances
};

// Measures a timeline of this program; schedule, execution, bound and formula are the caller's to
// fill in. O(instructions).
[[nodiscard]] Report measure(const Program& program, const Timeline& timeline);

// report.json, one object; the same report, the same bytes.
[[nodiscard]] std::string to_json(const Report& report);
// A few lines for a terminal.
[[nodiscard]] std::string summary(const Report& report);

}  // namespace counterflow
