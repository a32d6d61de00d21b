#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "executor/backend.h"
#include "executor/processes/faults.h"
#include "executor/processes/rank_run.h"

namespace counterflow::exec {

// Which rank this process is, where a launcher started one for each.
struct LaunchedRank {
  int rank = 0;
  int size = 1;
  std::string size_variable{};  // "WORLD_SIZE"
};
// By RANK and WORLD_SIZE (torchrun), OMPI_COMM_WORLD_RANK and _SIZE, or PMI_RANK and PMI_SIZE
// (mpirun). Throws InputError where they make no sense.
[[nodiscard]] std::optional<LaunchedRank> launched_rank();

struct GlooSettings {
  ProcessSettings process;
  // How long each rank may take to come; those that are started here have ten seconds at least.
  std::chrono::milliseconds meeting = std::chrono::seconds(30);
  std::vector<Fault> faults;
  // Of a rank that a launcher started, called when a compute does not come back: the process ends
  // right after it. May be empty.
  std::function<void(const RunResult&)> abandoned{};
};

// Runs a program with one process a rank. Started by a launcher, this process is one of them: they
// meet at rank 0 (MASTER_ADDR and MASTER_PORT), or in a directory that all see (COUNTERFLOW_STORE).
// Otherwise it starts the ranks itself, on this machine, and none of them outlives the call. The
// steps are those of all ranks, at rank 0 or at the caller who started them; a failure is known to
// all. Throws EnvironmentError where ranks cannot be started or do not meet, and InputError where
// the launcher's are not as many as the program's.
[[nodiscard]] RunResult run_over_gloo(const Program& program, Compute& compute,
                                      const GlooSettings& settings);

}  // namespace counterflow::exec
