#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "driver/pipeline.h"
#include "driver/searched_plan.h"
#include "report/format.h"
#include "scheduler/error.h"
#include "scheduler/problem/scenario.h"
#include "tools/artifacts.h"
#include "tools/command.h"
#include "tools/console.h"
#include "tools/output_files.h"
#include "tools/present.h"
#include "tools/search_options.h"
#include "tools/typed_plan.h"

namespace counterflow {
namespace {

constexpr int kMostTrials = 10'000'000;

struct SearchCommand : SearchOptions {
  std::string scenario;
  int trials = 0;  // 0: as many as suit
  int threads = 0;
  bool has_seed = false;

  [[nodiscard]] bool is_robust() const { return goal == "mean" || goal == "p95"; }
};

void refuse_disturbances(const SearchCommand& options) {
  const std::string given = !options.scenario.empty() ? "--scenario " + options.scenario
                            : options.trials > 0      ? fmt::format("--trials {}", options.trials)
                            : options.threads > 0     ? fmt::format("--threads {}", options.threads)
                                                      : "";
  if (given.empty()) return;
  throw InputError(
      fmt::format("{} is for runs that something disturbs, and the goal {} is of one that nothing "
                  "does; add --goal mean or --goal p95",
                  given, options.goal));
}

// What the goal asks an order to stand; nothing for goals of a run that nothing disturbs.
std::optional<RobustGoal> robust_goal(const SearchCommand& options, const Config& config) {
  if (!options.is_robust()) {
    refuse_disturbances(options);
    return std::nullopt;
  }
  if (!config.jitter && (options.scenario.empty() || options.trials > 0)) {
    throw InputError(fmt::format(
        "{}: {} has no jitter to draw from; add for example jitter: {{compute: 0.05}}{}",
        options.trials > 0 ? fmt::format("--trials {}", options.trials) : "--goal " + options.goal,
        options.config, options.trials > 0 ? "" : ", or give --scenario FILE"));
  }
  RobustGoal goal;
  goal.p95 = options.goal == "p95";
  if (!options.scenario.empty()) goal.scenario = read_scenario(options.scenario, config);
  goal.scenario_name = options.scenario;
  goal.trials = options.trials;
  if (options.has_seed) goal.seed = options.seed;
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  goal.threads = options.threads > 0 ? options.threads : std::max(1, cores);
  return goal;
}

// A schedule file does not say where the stages are, and a family's config need not. Nor does the
// config say what was said beside it.
void note_reading(const SearchCommand& options, const Plan& plan) {
  std::vector<std::string> words = options.retyped();
  if (!plan.config.placement) {
    words.emplace_back("--set");
    words.push_back(fmt::format("pipeline.placement={}", name(plan.problem.placement.kind())));
  }
  if (words.empty()) return;
  const std::filesystem::path file = std::filesystem::path(options.directory) / "schedule.csv";
  std::string line = "to read the order back: --schedule " + shell_word(file.string());
  for (const std::string& word : words) line += " " + shell_word(word);
  message(Severity::note, line);
}

// A budget in time is for the search. What else the command took is said where it is much.
void note_time(const SearchBudget& budget, const SearchedPlan& searched, Time whole) {
  const Time other = whole - searched.took;
  if (!budget.time || 10 * other < *budget.time) return;
  message(Severity::note, fmt::format("beside the search, reading, checking and simulating what it "
                                      "found took {}",
                                      readable_time(other)));
}

int search_config(const SearchCommand& options) {
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<std::string_view> names = artifacts_named({});
  const SearchBudget budget = search_budget(options);
  if (!options.directory.empty()) check_outputs(options.directory, names);
  SearchedPlan searched = options.name_as_typed([&] {
    Config config = read_config(options.config, options.overrides());
    const std::optional<RobustGoal> goal = robust_goal(options, config);
    return searched_plan(std::move(config), schedule_folder(options), budget, goal);
  });
  end_progress(budget);
  const Plan& plan = searched.plan;
  Verdict verdict = check(plan, kAllSemantics, pass_observer(options));
  if (!verdict.ok()) return report_faults(plan, verdict);
  Run done = run(plan, std::move(*verdict.lowered));
  done.report.robustness = std::move(searched.robustness);
  if (!options.directory.empty()) {
    write_files(options.directory, make_artifacts(names, plan, done));
  }
  present(done.report, options);
  if (options.quiet || options.json) return kDone;
  if (!options.directory.empty()) note_reading(options, plan);
  note_time(budget, searched,
            std::chrono::duration_cast<Time>(std::chrono::steady_clock::now() - begin));
  return kDone;
}

void add_disturbances(CLI::App& command, SearchCommand& options) {
  take_whole(
      *command.add_option("--trials", options.trials,
                          "for --goal mean and p95: try each order so often with the config's "
                          "jitter (default: up to 200, as suits the size)"),
      1, kMostTrials);
  command
      .add_option("--scenario", options.scenario,
                  "for --goal mean and p95: a YAML file of slow-downs and outages to stand")
      ->type_name("FILE");
  take_whole(*command.add_option("--threads", options.threads,
                                 "for --goal mean and p95; default one a core"),
             1, 1024);
}

}  // namespace

void add_search(CLI::App& app, Command& run) {
  const auto options = std::make_shared<SearchCommand>();
  CLI::App* command = app.add_subcommand(
      "search", "find a schedule for these costs and memory limits, with its proven gap");
  add_config_argument(*command, *options);
  add_search_options(*command, *options, {"mean", "p95"});
  add_disturbances(*command, *options);
  command
      ->add_option("-o,--output", options->directory,
                   "the folder to write what compile writes to; made if missing")
      ->type_name("DIR");
  add_common_options(*command, *options);
  command->callback([options, command, &run] {
    options->has_seed = command->count("--seed") > 0;
    run = [options] { return search_config(*options); };
  });
}

}  // namespace counterflow
