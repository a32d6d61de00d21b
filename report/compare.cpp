#include "report/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>

#include "report/format.h"
#include "report/json/writer.h"
#include "report/report_json.h"

namespace counterflow {
namespace {

// 1 for the first run, 0 where there is nothing to relate to.
double relative_makespan(const Report& report, const Report& first) {
  if (first.makespan.count() == 0) return 0;
  return static_cast<double>(report.makespan.count()) / static_cast<double>(first.makespan.count());
}

// Stages whose parameters the fullest rank holds.
int stages_a_rank(const Report& report) {
  int most = 0;
  for (const RankReport& rank : report.per_rank) most = std::max(most, rank.stages_held);
  return most;
}

// What a step takes: of consecutive ones what one more adds, else with reductions and optimizer.
std::optional<Time> step_of(const Report& report) {
  return report.consecutive ? report.consecutive->step : report.step;
}

void append_run(std::string& out, const NamedRun& run, const Report& first, std::size_t width) {
  const Report& report = run.drawing.report;
  std::int64_t activations = 0;
  Bytes memory;
  for (const RankReport& rank : report.per_rank) {
    activations = std::max(activations, rank.peak_activations);
    memory = std::max(memory, rank.peak_memory);
  }
  const std::optional<Time> step = step_of(report);
  const bool bounded = report.lower_bound.count() > 0;
  fmt::format_to(
      std::back_inserter(out),
      "{:<{}}{:>7}{:>8}{:>13}{:>12}{:>10.3f}{:>12}{:>10}{:>13}{:>12}{:>10}{:>13}{:>13}\n", run.name,
      width, report.ranks, report.stages, stages_a_rank(report), readable_time(report.makespan),
      relative_makespan(report, first), step ? readable_time(*step) : "-",
      readable_share(report.bubble_fraction), readable_share(report.span_bubble_fraction),
      bounded ? readable_time(report.lower_bound) : "-", bounded ? readable_share(report.gap) : "-",
      activations, readable_bytes(memory));
}

}  // namespace

std::string compare_table(std::span<const NamedRun> runs) {
  std::size_t width = 8;
  for (const NamedRun& run : runs) width = std::max(width, run.name.size());
  std::string out =
      fmt::format("{:<{}}{:>7}{:>8}{:>13}{:>12}{:>10}{:>12}{:>10}{:>13}{:>12}{:>10}{:>13}{:>13}\n",
                  "run", width, "ranks", "stages", "stages/rank", "makespan", "relative", "step",
                  "bubble", "span bubble", "bound", "gap", "activations", "memory");
  for (const NamedRun& run : runs) append_run(out, run, runs.front().drawing.report, width);
  return out;
}

std::string compare_json(std::span<const NamedRun> runs) {
  std::string out;
  json::Object object(out, ",\n");
  object.add("schema_version", kSchemaVersion);
  json::Array array(object.member("runs"), ",\n");
  for (const NamedRun& run : runs) {
    json::Object entry(array.element());
    entry.add("name", run.name);
    entry.add("ranks", std::int64_t{run.drawing.report.ranks});
    entry.add("stages", std::int64_t{run.drawing.report.stages});
    entry.add("stages_per_rank", std::int64_t{stages_a_rank(run.drawing.report)});
    entry.add("relative_makespan",
              relative_makespan(run.drawing.report, runs.front().drawing.report));
    if (const auto step = step_of(run.drawing.report)) entry.add("step_ns", step->count());
    append_json(entry.member("report"), run.drawing.report);
    entry.close();
  }
  array.close();
  object.close();
  out += '\n';
  return out;
}

}  // namespace counterflow
