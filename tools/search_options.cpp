#include "tools/search_options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <limits>

#include "scheduler/error.h"
#include "scheduler/problem/quantity.h"

namespace counterflow {
namespace {

void show(const SearchProgress& progress) {
  const double best = static_cast<double>(progress.makespan.count());
  const double bound = static_cast<double>(progress.lower_bound.count());
  fmt::print(stderr, "\r\033[Ksearching {:3.0f} %: {:.3f} ms, gap {:.2f} %", 100 * progress.share,
             best * 1e-6, bound > 0 ? 100 * (best / bound - 1) : 0.0);
  std::fflush(stderr);
}

}  // namespace

void add_search_options(CLI::App& command, SearchOptions& options,
                        const std::vector<std::string>& more) {
  CLI::Option* budget =
      command.add_option("--budget", options.budget, "search for so long: 200ms, 5s")
          ->type_name("TIME");
  command
      .add_option("--iterations", options.iterations,
                  "try so many schedules; gives the same result every time (the default, with a "
                  "number that suits the size)")
      ->type_name("N")
      ->excludes(budget);
  take_whole(*command.add_option("--starts", options.starts,
                                 "so many searches at a time, each with the whole budget; the best "
                                 "counts (default: with --budget one a core, else one)"),
             1, kMaxStarts);
  std::vector<std::string> goals{"makespan", "span"};
  goals.insert(goals.end(), more.begin(), more.end());
  command
      .add_option("--goal", options.goal,
                  fmt::format("what to keep small: {}, or span (the longest of a rank, first begin "
                              "to last end)",
                              more.empty() ? "makespan"
                                           : fmt::format("makespan, its {} under disturbances",
                                                         fmt::join(more, " or "))))
      ->check(CLI::IsMember(goals))
      ->type_name("GOAL");
}

SearchBudget search_budget(const SearchOptions& options) {
  SearchBudget budget;
  budget.seed = options.seed;
  budget.starts = options.starts;
  if (options.goal == "span") budget.goal = SearchGoal::span;
  if (!options.budget.empty()) {
    budget.time = positive_duration("--budget", options.budget, "200ms");
  }
  if (!options.iterations.empty()) {
    try {
      budget.iterations =
          parse_integer(options.iterations, 1, std::numeric_limits<std::int32_t>::max());
    } catch (const InputError& error) {
      throw InputError(fmt::format("--iterations {}", error.what()));
    }
  }
  if (isatty(STDERR_FILENO) == 1 && !options.quiet && !options.json) budget.progress = show;
  return budget;
}

void end_progress(const SearchBudget& budget) {
  if (!budget.progress) return;
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
}

}  // namespace counterflow
