#include "report/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "driver/fault_text.h"
#include "driver/input_file.h"
#include "driver/pipeline.h"
#include "report/drawing.h"
#include "schedules/registry.h"
#include "tools/command.h"
#include "tools/console.h"
#include "tools/output_files.h"
#include "tools/present.h"
#include "tools/typed_plan.h"

namespace counterflow {
namespace {

struct CompareOptions : Options {
  std::vector<std::string> inputs;
  std::vector<std::string> schedules;
  std::string output;
};

struct Refusal {
  std::string schedule;
  std::string reason;
  bool is_infeasible = false;  // a well-formed question with the answer no
};

struct Comparison {
  std::vector<NamedRun> runs;
  std::vector<Refusal> refused;
  bool of_one_model = false;  // cut from the same layers, whatever the number of stages
};

// The options of one of the schedules.
Options options_for(const CompareOptions& options, const std::string& schedule) {
  Options one = options;
  one.config = options.inputs.front();
  one.schedule = schedule;
  one.schedule_label = "--schedules: ";
  return one;
}

NamedRun run_schedule(const Options& options) {
  const Plan plan = make_plan(options);
  Verdict verdict = check(plan, options.asked_semantics(), pass_observer(options));
  if (!verdict.ok()) throw InfeasibleError(faults_summary(plan, verdict));
  const Run done = run(plan, std::move(*verdict.lowered));
  return {options.schedule,
          make_drawing({done.program, done.timeline, done.report, plan.whole().limits.bytes})};
}

// A mistyped name or a faulty config is the user's to mend; a family that does not fit is a result.
Config check_inputs(const CompareOptions& options) {
  if (options.schedules.empty()) {
    throw InputError("compare needs --schedules a,b,c beside a config, or two timeline.json");
  }
  if (!options.schedule.empty()) {
    throw InputError(
        fmt::format("--schedule {}: compare takes its schedules from --schedules; add "
                    "it there",
                    options.schedule));
  }
  const Options first = options_for(options, options.schedules.front());
  Config config = first.name_as_typed([&] { return read_config(first.config, first.overrides()); });
  for (const std::string& name : options.schedules) {
    if (name == "auto" || is_schedule_file(name) || find_family(name) != nullptr) continue;
    throw InputError("--schedules: " + unknown_schedule(name));
  }
  return config;
}

// Of a file there is no shape to refuse: whatever is wrong with it is an error.
[[noreturn]] void fail_file(const Options& options, std::string_view reason) {
  const bool named = reason.starts_with(options.schedule_label);
  throw InputError((named ? "" : options.schedule_label) + std::string(reason));
}

Comparison compare_schedules(const CompareOptions& options) {
  Comparison result;
  result.of_one_model = check_inputs(options).layers.has_value();
  for (const std::string& schedule : options.schedules) {
    const Options one = options_for(options, schedule);
    try {
      result.runs.push_back(run_schedule(one));
    } catch (const InputError& error) {
      if (is_schedule_file(schedule)) fail_file(one, error.what());
      result.refused.push_back({schedule, error.what(), false});
    } catch (const InfeasibleError& error) {
      result.refused.push_back({schedule, error.what(), true});
    }
  }
  return result;
}

Comparison compare_timelines(const CompareOptions& options) {
  Comparison result;
  for (const std::string& path : options.inputs) {
    result.runs.push_back({path, parse_timeline_json(read_input(path), path)});
  }
  return result;
}

// A bare cost is one stage's, so more stages are more work: say so before figures are read.
void note_stage_counts(const std::vector<NamedRun>& runs) {
  const auto stages = [](const NamedRun& run) { return run.drawing.report.stages; };
  const auto differs = [&](const NamedRun& run) { return stages(run) != stages(runs.front()); };
  const auto other = std::find_if(runs.begin(), runs.end(), differs);
  if (other == runs.end()) return;
  message(Severity::note,
          fmt::format("{} has {} stages and {} has {}: one cost for all stages is the cost of one "
                      "stage, so these are models of different size",
                      runs.front().name, stages(runs.front()), other->name, stages(*other)));
}

std::string comparison_json(const Comparison& comparison) {
  auto object = nlohmann::ordered_json::parse(compare_json(comparison.runs));
  object["refused"] = nlohmann::ordered_json::array();
  for (const Refusal& each : comparison.refused) {
    object["refused"].push_back({{"schedule", each.schedule}, {"reason", each.reason}});
  }
  return object.dump(1) + "\n";
}

// FILE.html, or compare.html in a folder.
OutputPath page_path(const std::string& output) {
  const std::filesystem::path path(output);
  return OutputPath((path.extension() == ".html" ? path : path / "compare.html").string());
}

int compare(const CompareOptions& options) {
  const bool timelines = options.inputs.size() == 2;
  if (timelines && !options.schedules.empty()) {
    throw InputError("compare takes one config with --schedules, or two timeline.json without");
  }
  if (timelines && !options.overrides().empty()) {
    throw InputError(
        fmt::format("two timeline.json are compared as they are; leave out {}, which "
                    "belongs to a config",
                    options.overrides().front()));
  }
  const OutputPath page = page_path(options.output);
  if (!options.output.empty()) check_outputs(page.folder, {page.name});
  const Comparison result = timelines ? compare_timelines(options) : compare_schedules(options);
  for (const Refusal& each : result.refused) {
    message(result.runs.empty() ? Severity::error : Severity::warning,
            fmt::format("{} is left out: {}", each.schedule, each.reason));
  }
  if (result.runs.empty()) {
    const bool infeasible = std::any_of(result.refused.begin(), result.refused.end(),
                                        [](const Refusal& each) { return each.is_infeasible; });
    return infeasible ? kAnswerIsNo : kBadInput;
  }
  if (!options.output.empty()) {
    write_files(page.folder, {{page.name, [&] { return compare_html(result.runs); }}});
  }
  if (options.json) {
    print(comparison_json(result));
  } else if (!options.quiet) {
    print(compare_table(result.runs));
    if (!result.of_one_model) note_stage_counts(result.runs);
  }
  return kDone;
}

}  // namespace

void add_compare(CLI::App& app, Command& run) {
  const auto options = std::make_shared<CompareOptions>();
  CLI::App* command =
      app.add_subcommand("compare", "schedules of one config, or two timelines, side by side");
  command->add_option("INPUT", options->inputs, "a config, or two timeline.json")
      ->required()
      ->expected(1, 2);
  command->add_option("--schedules", options->schedules, "families or .csv files to compare")
      ->type_name("A,B,...")
      ->delimiter(',')
      ->allow_extra_args(false);
  command
      ->add_option("-o,--output", options->output,
                   "a page with the timelines under each other: FILE.html, or a folder for "
                   "compare.html")
      ->type_name("PATH");
  add_common_options(*command, *options);
  command->callback([options, &run] { run = [options] { return compare(*options); }; });
}

}  // namespace counterflow
