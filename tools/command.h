#pragma once

#include <CLI/CLI.hpp>
#include <functional>

// The subcommands. Each declares its options; when it is the one given, it sets `run`, which does
// the work after parsing has succeeded and returns the exit status.
namespace counterflow {

using Command = std::function<int()>;

enum ExitStatus : int {
  kDone = 0,
  kAnswerIsNo = 1,
  kBadInput = 2,
  kInternalError = 3,
  kEnvironmentFailed = 4,
};

void add_compile(CLI::App& app, Command& run);
void add_simulate(CLI::App& app, Command& run);
void add_verify(CLI::App& app, Command& run);
void add_compare(CLI::App& app, Command& run);
void add_partition(CLI::App& app, Command& run);
void add_schedules(CLI::App& app, Command& run);
void add_search(CLI::App& app, Command& run);
void add_frontier(CLI::App& app, Command& run);
void add_run(CLI::App& app, Command& run);
void add_calibrate(CLI::App& app, Command& run);
void add_diagnose(CLI::App& app, Command& run);

}  // namespace counterflow
