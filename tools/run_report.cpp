#include "tools/run_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "executor/progress.h"
#include "report/format.h"
#include "report/json/writer.h"
#include "report/report_json.h"
#include "scheduler/ir/instruction_text.h"
#include "scheduler/ir/schedule_file.h"
#include "simulator/memory.h"

namespace counterflow {
namespace {

// What ranks hold follows from when their kernels ran, whoever ran them.
void add_memory(const Program& program, Timeline& timeline) {
  for (std::size_t r = 0; r < program.ranks.size(); ++r) {
    RankTimeline& rank = timeline.ranks[r];
    rank.memory = memory_over_time(program, program.ranks[r], rank.instructions);
  }
}

// One thread that skips the ops measures nothing but itself.
bool takes_time(const RunOptions& options) {
  return options.backend != "virtual" || options.compare;
}

void append_failure(std::string& out, const RunReport& report) {
  const exec::Failure& failure = *report.failure;
  json::Object object(out);
  object.add("rank", std::int64_t{failure.rank});
  object.add("index", std::int64_t{failure.instruction});
  object.add("op", report.failed_op);
  object.add("step", std::int64_t{failure.step});
  object.add("reason", failure.reason);
  if (failure.culprit) object.add("culprit", std::int64_t{*failure.culprit});
  object.close();
}

}  // namespace

RunReport make_run_report(const RunOptions& options, const RunInput& input,
                          const std::optional<exec::Failure>& failure, RunSteps steps) {
  RunReport report;
  report.backend = options.backend;
  report.program_hash = hash(input.program);
  report.steps = options.steps;
  report.failure = failure;
  if (report.failure) {
    const RankProgram& rank = input.program.ranks[static_cast<std::size_t>(report.failure->rank)];
    report.failed_op = called(rank, rank.instructions[report.failure->instruction]);
  }
  report.makespans = steps.makespans();
  if (report.makespans.empty()) return report;
  if (report.makespans.size() > 1 && takes_time(options)) report.statistics = steps.statistics();
  RunSteps::Shown shown = steps.take_shown();
  report.shown = shown.step;
  report.timeline = std::move(shown.timeline);
  add_memory(input.program, report.timeline);
  report.measured = measure(input.program, report.timeline);
  report.measured.schedule = input.schedule;
  report.measured.execution = input.execution.name;
  if (input.consecutive > 1) {
    report.measured.consecutive = measure_steps(input.program, report.timeline, input.consecutive);
  }
  if (options.compare) {
    report.error = prediction_error(input.program, input.predicted, report.timeline);
  }
  return report;
}

std::string to_json(const RunReport& report) {
  std::string out;
  json::Object object(out, ",\n ");
  object.add("schema_version", std::int64_t{kSchemaVersion});
  object.member("completed") += report.failure ? "false" : "true";
  object.add("backend", report.backend);
  object.add("program_hash", fmt::format("{:016x}", report.program_hash));
  object.add("steps", std::int64_t{report.steps});
  json::Array makespans(object.member("makespans_ns"));
  for (const Time makespan : report.makespans) makespans.add(makespan.count());
  makespans.close();
  if (report.failure) append_failure(object.member("failure"), report);
  if (report.shown) {
    object.add("shown_step", std::int64_t{*report.shown});
    append_json(object.member("report"), report.measured);
  }
  if (report.error) append_json(object.member("prediction_error"), *report.error);
  if (report.statistics) append_json(object.member("statistics"), *report.statistics);
  object.close();
  out += '\n';
  return out;
}

std::string summary(const RunReport& report) {
  if (!report.shown) return {};
  std::string out = summary(report.measured);
  const auto [least, most] = std::ranges::minmax(report.makespans);
  fmt::format_to(std::back_inserter(out), "\n  {}, program {:016x}, {} step{}", report.backend,
                 report.program_hash, report.makespans.size(),
                 report.makespans.size() == 1 ? "" : "s");
  if (report.makespans.size() > 1) {
    fmt::format_to(std::back_inserter(out), ": shown is step {}, of median makespan; all {} to {}",
                   *report.shown, readable_time(least), readable_time(most));
  }
  out += '\n';
  if (report.statistics) out += summary(*report.statistics);
  if (report.error) out += summary(*report.error);
  return out;
}

}  // namespace counterflow
