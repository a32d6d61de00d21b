#pragma once

#include <optional>
#include <string>
#include <vector>

#include "executor/backend.h"
#include "report/prediction_error.h"
#include "report/report.h"
#include "report/run_statistics.h"
#include "tools/run_options.h"
#include "tools/run_steps.h"

namespace counterflow {

// What `run` tells.
struct RunReport {
  std::string backend;
  std::uint64_t program_hash = 0;
  int steps = 0;                // asked for
  std::vector<Time> makespans;  // of each step that completed
  std::optional<exec::Failure> failure;
  std::string failed_op;                 // of the failure, as schedule files name it
  std::optional<int> shown;              // see RunSteps; none completed: nothing
  Timeline timeline;                     // of that step
  Report measured;                       // and its figures
  std::optional<PredictionError> error;  // where asked for
  // Of several steps in which ops took their time.
  std::optional<RunStatistics> statistics;
};

// Of the steps that completed, and of what stopped the run.
[[nodiscard]] RunReport make_run_report(const RunOptions& options, const RunInput& input,
                                        const std::optional<exec::Failure>& failure,
                                        RunSteps steps);
// One object.
[[nodiscard]] std::string to_json(const RunReport& report);
// A few lines for a terminal.
[[nodiscard]] std::string summary(const RunReport& report);

}  // namespace counterflow
