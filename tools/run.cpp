#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "report/compare.h"
#include "report/draw.h"
#include "tools/command.h"
#include "tools/console.h"
#include "tools/flight_files.h"
#include "tools/output_files.h"
#include "tools/run_backend.h"
#include "tools/run_options.h"
#include "tools/run_report.h"

namespace counterflow {
namespace {

void write_artifacts(const RunOptions& options, const RunInput& input, const RunReport& report) {
  const DrawContext measured{input.program, report.timeline, report.measured, input.memory_limits};
  std::vector<OutputFile> files = {
      {"program.json", [&] { return program_json(input.program); }},
      {"report.json", [&] { return to_json(report.measured); }},
      {"run.json", [&] { return to_json(report); }},
      {"timeline.json", [&] { return timeline_json(measured); }},
      {"timeline.html", [&] { return timeline_html(measured); }},
      {"timeline.svg", [&] { return timeline_svg(measured); }},
      {"trace.json", [&] { return trace_json(measured); }},
  };
  Report figures;
  if (options.compare) {
    figures = measure(input.program, input.predicted);
    figures.schedule = input.schedule;
    figures.execution = input.execution.name;
    const DrawContext predicted{input.program, input.predicted, figures, input.memory_limits};
    files.push_back({"predicted.json", [=] { return timeline_json(predicted); }});
    files.push_back({"compare.html", [=] {
                       const std::vector<NamedRun> runs = {{"predicted", make_drawing(predicted)},
                                                           {"measured", make_drawing(measured)}};
                       return compare_html(runs);
                     }});
  }
  write_files(options.directory, files);
}

int report_failure(const RunReport& report, const RunOptions& options) {
  if (options.json && tells_result(options)) print(to_json(report));
  const exec::Failure& failure = *report.failure;
  const std::string culprit = failure.culprit
                                  ? fmt::format("; the cause lies with rank {}", *failure.culprit)
                                  : std::string("; each waits for another");
  message(Severity::error,
          fmt::format("the run stops in step {}: rank {}, instruction {}: {}{}", failure.step,
                      failure.rank, failure.instruction, failure.reason, culprit));
  // In one process only the program can be at fault, between several also what connects them.
  return options.backend == "gloo" ? kEnvironmentFailed : kAnswerIsNo;
}

int run_program(const RunOptions& options) {
  check_backend(options);
  if (!options.directory.empty() && tells_result(options)) check_outputs(options.directory);
  const std::optional<RunInput> input = run_input(options);
  if (!input) return kAnswerIsNo;
  if (!options.directory.empty()) {
    forget_flight_records(options.directory, rank_of_launcher(options));
  }
  RunSteps steps(input->program, input->predicted);
  exec::RunResult result = execute(options, *input, steps);
  const auto stopped = std::move(result.stopped);
  const RunReport report = make_run_report(options, *input, result.failure, std::move(steps));
  if (report.failure) {
    const int status = report_failure(report, options);
    if (!options.directory.empty()) {
      write_flight_records(options.directory, input->program, *report.failure, stopped);
    }
    return status;
  }
  if (!tells_result(options)) return kDone;
  if (!options.directory.empty()) write_artifacts(options, *input, report);
  if (options.json) {
    print(to_json(report));
  } else if (!options.quiet) {
    print(summary(report));
  }
  return kDone;
}

}  // namespace

void add_run(CLI::App& app, Command& run) {
  const auto options = std::make_shared<RunOptions>();
  CLI::App* command =
      app.add_subcommand("run", "run the program on this machine, and measure what was predicted");
  add_run_options(*command, *options);
  command->callback([options, &run] { run = [options] { return run_program(*options); }; });
}

}  // namespace counterflow
