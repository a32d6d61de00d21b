#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "scheduler/search/budget.h"
#include "tools/options.h"

// What the subcommands that search take beside the common options.
namespace counterflow {

struct SearchOptions : Options {
  std::string budget;      // a duration
  std::string iterations;  // a count
  std::string goal = "makespan";
  int starts = 0;         // 0: as many as suit
  std::string directory;  // "": nothing is written
};

// Declares --budget, --iterations, --starts and --goal; the goals are makespan, span and `more`.
void add_search_options(CLI::App& command, SearchOptions& options,
                        const std::vector<std::string>& more = {});

// The budget asked for, with progress on stderr where that is a terminal and nothing asks for
// quiet. Throws InputError.
[[nodiscard]] SearchBudget search_budget(const SearchOptions& options);
// Wipes the progress line, if there was one.
void end_progress(const SearchBudget& budget);

}  // namespace counterflow
