#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "executor/backend.h"
#include "scheduler/problem/links.h"
#include "scheduler/problem/problem.h"
#include "tools/options.h"

namespace counterflow {

// What `run` takes beside the options of every subcommand that reads a config.
struct RunOptions : Options {
  std::string program;  // program.json; "": compiled from the config
  std::string backend = "threads";
  int steps = 1;
  bool consecutive = false;  // all of them as one program
  std::string patience;
  bool compare = false;
  std::string directory;
  std::vector<std::string> faults;  // --fault, as given
};
void add_run_options(CLI::App& command, RunOptions& options);

// What is run, and what it is expected to do.
struct RunInput {
  Program program;
  std::string schedule;  // its name
  ExecutionModel execution;
  Links links;
  std::vector<Bytes> memory_limits;  // one a rank, or empty
  Timeline predicted;
  int consecutive = 1;  // the steps that the program makes
};

// The program of the config, or of --program: checked, and simulated to its end. Nothing: it has
// faults, which have been told. Throws InputError and InfeasibleError.
[[nodiscard]] std::optional<RunInput> run_input(const RunOptions& options);

// How long a run may stand still: --patience, else ten seconds, or twice the longest kernel.
[[nodiscard]] Time patience_of(const RunOptions& options, const Program& program);

}  // namespace counterflow
