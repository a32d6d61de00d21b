#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "driver/pipeline.h"
#include "scheduler/error.h"
#include "tools/artifacts.h"
#include "tools/command.h"
#include "tools/console.h"
#include "tools/output_files.h"
#include "tools/present.h"
#include "tools/typed_plan.h"

namespace counterflow {
namespace {

struct CompileOptions : Options {
  std::string directory;
  std::vector<std::string> emit;
};

int compile_to_files(const CompileOptions& options) {
  const std::vector<std::string_view> names = artifacts_named(options.emit);
  check_outputs(options.directory, names);
  const Plan plan = make_plan(options);
  Verdict verdict = check(plan, kAllSemantics, pass_observer(options));
  if (!verdict.ok()) return report_faults(plan, verdict);
  const Run done = run(plan, std::move(*verdict.lowered));
  write_files(options.directory, make_artifacts(names, plan, done));
  present(done.report, options);
  if (options.verbose && !options.json) {
    for (const std::string_view name : names) {
      message(Severity::note, fmt::format("wrote {}/{}", options.directory, name));
    }
  }
  return kDone;
}

}  // namespace

void add_compile(CLI::App& app, Command& run) {
  const auto options = std::make_shared<CompileOptions>();
  CLI::App* command =
      app.add_subcommand("compile", "schedule to program: verified, simulated, written as files");
  add_config_argument(*command, *options);
  command->add_option("-o,--output", options->directory, "the folder to write to; made if missing")
      ->type_name("DIR")
      ->required();
  command
      ->add_option("--emit", options->emit,
                   "only these files (report.json), names (timeline) or kinds (svg); default all")
      ->type_name("A,B,...")
      ->delimiter(',')
      ->allow_extra_args(false);
  add_common_options(*command, *options);
  command->callback([options, &run] { run = [options] { return compile_to_files(*options); }; });
}

}  // namespace counterflow
