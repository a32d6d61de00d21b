#include "simulator/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "driver/consecutive.h"
#include "driver/pipeline.h"
#include "scheduler/error.h"
#include "scheduler/problem/scenario.h"
#include "simulator/monte_carlo.h"
#include "simulator/stoppage.h"
#include "tools/command.h"
#include "tools/present.h"
#include "tools/stoppage.h"
#include "tools/typed_plan.h"

namespace counterflow {
namespace {

constexpr int kMostTrials = 10'000'000;
constexpr int kMostSteps = 1000;

struct SimulateOptions : Options {
  std::string scenario;
  int trials = 0;  // 0: the given costs, no jitter
  int steps = 1;
  int threads = 0;
  bool has_seed = false;
};

Trials trials_of(const Plan& plan, const Program& program, const SimulateOptions& options,
                 const Scenario& scenario) {
  if (!plan.config.jitter) {
    throw InputError(fmt::format(
        "--trials {}: {} has no jitter to draw from; add for example jitter: {{compute: 0.05}}",
        options.trials, options.config));
  }
  const Jitter& jitter = *plan.config.jitter;
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  return run_trials(program, plan.whole().links, plan.config.execution, jitter,
                    {.trials = options.trials,
                     .seed = options.has_seed ? options.seed : jitter.seed,
                     .threads = options.threads > 0 ? options.threads : std::max(1, cores)},
                    scenario);
}

int simulate_config(const SimulateOptions& options) {
  const Plan plan = make_plan(options);
  const Scenario scenario =
      options.scenario.empty() ? Scenario{} : read_scenario(options.scenario, plan.config);
  Verdict verdict = check(plan, options.asked_semantics(), pass_observer(options));
  if (!verdict.ok()) return report_faults(plan, verdict);
  const Program program = std::move(*verdict.lowered);
  Report report;
  if (options.scenario.empty()) {
    report = run(plan, program).report;
  } else {
    const Simulation simulation =
        simulate(program, plan.whole().links, plan.config.execution, scenario);
    if (!simulation.diagnostics.empty()) {
      return report_stoppage(explain_stop(program, simulation.timeline, scenario), options);
    }
    report = make_report(plan, program, simulation.timeline);
    if (report.lower_bound > Time{0}) {
      report.warnings.emplace_back(
          "the lower bound, and with it the gap, is that of the costs as given, without the "
          "scenario");
    }
  }
  if (options.steps > 1) {
    verdict = check_in_steps(plan, program, options.steps, options.asked_semantics());
    if (!verdict.ok()) return report_faults(plan, verdict);
    report.consecutive =
        measure_steps(*verdict.lowered, timeline_of(plan, *verdict.lowered), options.steps);
  }
  if (options.trials > 0) report.trials = trials_of(plan, program, options, scenario);
  present(report, options);
  return kDone;
}

}  // namespace

void add_simulate(CLI::App& app, Command& run) {
  const auto options = std::make_shared<SimulateOptions>();
  CLI::App* command = app.add_subcommand("simulate", "the report alone");
  add_config_argument(*command, *options);
  CLI::Option* trials =
      command->add_option("--trials", options->trials,
                          "run so often with the config's jitter: quantiles and sensitivities");
  take_whole(*trials, 1, kMostTrials);
  CLI::Option* threads =
      command->add_option("--threads", options->threads, "for --trials; default one a core");
  take_whole(*threads, 1, 1024);
  threads->needs(trials);
  CLI::Option* steps = command->add_option(
      "--steps", options->steps,
      "so many steps one behind the other, without a barrier: the steady time of one");
  take_whole(*steps, 1, kMostSteps);
  command
      ->add_option("--scenario", options->scenario,
                   "a YAML file of slow-downs, outages and failures to run under")
      ->type_name("FILE")
      ->excludes(steps);
  add_common_options(*command, *options);
  command->callback([options, command, &run] {
    options->has_seed = command->count("--seed") > 0;
    run = [options] { return simulate_config(*options); };
  });
}

}  // namespace counterflow
