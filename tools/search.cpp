#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "driver/pipeline.h"
#include "driver/searched_plan.h"
#include "tools/artifacts.h"
#include "tools/command.h"
#include "tools/console.h"
#include "tools/output_files.h"
#include "tools/present.h"
#include "tools/search_options.h"
#include "tools/typed_plan.h"

namespace counterflow {
namespace {

int search_config(const SearchOptions& options) {
  const std::vector<std::string_view> names = artifacts_named({});
  const SearchBudget budget = search_budget(options);
  const SearchedPlan searched = options.name_as_typed([&] {
    return searched_plan(read_config(options.config, options.overrides()), schedule_folder(options),
                         budget);
  });
  end_progress(budget);
  const Plan& plan = searched.plan;
  Verdict verdict = check(plan, kAllSemantics, pass_observer(options));
  if (!verdict.ok()) return report_faults(plan, verdict);
  const Run done = run(plan, std::move(*verdict.lowered));
  if (!options.directory.empty()) {
    write_files(options.directory, make_artifacts(names, plan, done));
  }
  present(done.report, options);
  return kDone;
}

}  // namespace

void add_search(CLI::App& app, Command& run) {
  const auto options = std::make_shared<SearchOptions>();
  CLI::App* command = app.add_subcommand(
      "search", "find a schedule for these costs and memory limits, with its proven gap");
  add_config_argument(*command, *options);
  add_search_options(*command, *options);
  command
      ->add_option("-o,--output", options->directory,
                   "the folder to write what compile writes to; made if missing")
      ->type_name("DIR");
  add_common_options(*command, *options);
  command->callback([options, &run] { run = [options] { return search_config(*options); }; });
}

}  // namespace counterflow
