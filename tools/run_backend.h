#pragma once

#include <optional>

#include "executor/backend.h"
#include "tools/run_options.h"
#include "tools/run_steps.h"

namespace counterflow {

// Throws EnvironmentError where the backend that is asked for is not built in.
void check_backend(const RunOptions& options);

// Runs it on the backend that is asked for; every step that completed is added to `steps`, none is
// in the result. Throws EnvironmentError where it cannot.
[[nodiscard]] exec::RunResult execute(const RunOptions& options, const RunInput& input,
                                      RunSteps& steps);

// Does this process tell how the run went? Of several that a launcher started only rank 0 does.
[[nodiscard]] bool tells_result(const RunOptions& options);

// Which of several that a launcher started this process is.
[[nodiscard]] std::optional<Rank> rank_of_launcher(const RunOptions& options);

}  // namespace counterflow
