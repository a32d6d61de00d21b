#pragma once

#include "executor/backend.h"
#include "tools/run_options.h"

namespace counterflow {

// Throws EnvironmentError where the backend that is asked for is not built in.
void check_backend(const RunOptions& options);

// Runs it on the backend that is asked for. Throws EnvironmentError where it cannot.
[[nodiscard]] exec::RunResult execute(const RunOptions& options, const RunInput& input);

// Does this process tell how the run went? Of several that a launcher started only rank 0 does.
[[nodiscard]] bool tells_result(const RunOptions& options);

}  // namespace counterflow
