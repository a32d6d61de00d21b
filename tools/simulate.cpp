#include <memory>

#include "driver/pipeline.h"
#include "tools/command.h"
#include "tools/present.h"
#include "tools/typed_plan.h"

namespace counterflow {
namespace {

int simulate_config(const Options& options) {
  const Plan plan = make_plan(options);
  Verdict verdict = check(plan, options.asked_semantics(), pass_observer(options));
  if (!verdict.ok()) return report_faults(plan, verdict);
  present(run(plan, std::move(*verdict.lowered)).report, options);
  return kDone;
}

}  // namespace

void add_simulate(CLI::App& app, Command& run) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("simulate", "the report alone");
  add_config_argument(*command, *options);
  add_common_options(*command, *options);
  command->callback([options, &run] { run = [options] { return simulate_config(*options); }; });
}

}  // namespace counterflow
