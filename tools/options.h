#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "scheduler/ir/execution_model.h"
#include "scheduler/problem/config.h"

namespace counterflow {

// What every subcommand that reads a config takes.
struct Options {
  std::string config;
  std::string
      schedule;  // a family or a .csv file relative to the working directory; "": the config's
  std::string execution;
  std::string semantics = "all";
  std::string ranks;
  std::string microbatches;
  std::string chunks;
  std::vector<std::string> settings;  // --set, as given
  std::uint64_t seed = 0;
  bool json = false;
  bool quiet = false;
  bool verbose = false;
  bool dump_passes = false;

  // All of them as config overrides. A shortcut such as --ranks wins over --set.
  [[nodiscard]] Overrides overrides() const;
  // The semantics whose deadlocks count.
  [[nodiscard]] std::vector<Semantics> asked_semantics() const;
};

// Declares the options above, the config itself excepted.
void add_common_options(CLI::App& command, Options& options);
// Declares CONFIG.
void add_config_argument(CLI::App& command, Options& options);

}  // namespace counterflow
