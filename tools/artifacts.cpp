#include "tools/artifacts.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "driver/suggestion.h"
#include "report/dot.h"
#include "report/draw.h"
#include "report/gzip.h"
#include "scheduler/error.h"
#include "scheduler/ir/schedule_file.h"
#include "scheduler/problem/config.h"
#include "tools/graphviz.h"

namespace counterflow {
namespace {

struct Artifact {
  std::string_view name;
  std::string (*make)(const Plan&, const Run&);
  bool on_request = false;  // made only where its full name is given
};

DrawContext drawn(const Plan& plan, const Run& run) {
  return {run.program, run.timeline, run.report, plan.whole().limits.bytes};
}

constexpr Artifact kArtifacts[] = {
    {"schedule.csv", [](const Plan& plan, const Run&) { return to_csv(plan.schedule); }},
    {"program.csv", [](const Plan&, const Run& run) { return to_csv(run.program); }},
    {"program.json", [](const Plan&, const Run& run) { return program_json(run.program); }},
    {"report.json", [](const Plan&, const Run& run) { return to_json(run.report); }},
    {"timeline.json",
     [](const Plan& plan, const Run& run) { return timeline_json(drawn(plan, run)); }},
    {"timeline.html",
     [](const Plan& plan, const Run& run) { return timeline_html(drawn(plan, run)); }},
    {"timeline.svg",
     [](const Plan& plan, const Run& run) { return timeline_svg(drawn(plan, run)); }},
    {"trace.json", [](const Plan& plan, const Run& run) { return trace_json(drawn(plan, run)); }},
    {"graph.dot",
     [](const Plan& plan, const Run&) { return graph_dot(plan.problem, plan.schedule); }},
    // The same again, for large runs: Perfetto opens all of them.
    {"trace.json.gz",
     [](const Plan& plan, const Run& run) { return gzip(trace_json(drawn(plan, run))); }, true},
    {"trace.perfetto-trace",
     [](const Plan& plan, const Run& run) { return trace_perfetto(drawn(plan, run)); }, true},
    {"trace.perfetto-trace.gz",
     [](const Plan& plan, const Run& run) { return gzip(trace_perfetto(drawn(plan, run))); }, true},
    // By another program, whose versions draw differently.
    {"graph.svg",
     [](const Plan& plan, const Run&) {
       return render_svg(graph_dot(plan.problem, plan.schedule));
     },
     true},
};

bool selects(std::string_view entry, const Artifact& artifact) {
  const std::string_view name = artifact.name;
  if (artifact.on_request) return entry == name;
  const std::size_t dot = name.find('.');
  return entry == name || entry == name.substr(0, dot) || entry == name.substr(dot + 1);
}

[[noreturn]] void fail_unknown(std::string_view entry) {
  std::vector<std::string_view> known;
  for (const Artifact& each : kArtifacts) known.push_back(each.name);
  std::string list;
  for (const std::string_view each : known)
    list += fmt::format("{}{}", list.empty() ? "" : " ", each);
  const std::string guess = did_you_mean(entry, known);
  throw InputError(fmt::format("--emit: unknown file '{}'{} Known: {}", entry,
                               guess.empty() ? "." : guess, list));
}

}  // namespace

std::vector<std::string_view> artifacts_named(const std::vector<std::string>& emit) {
  for (const std::string& entry : emit) {
    const auto known = [&](const Artifact& each) { return selects(entry, each); };
    if (std::none_of(std::begin(kArtifacts), std::end(kArtifacts), known)) fail_unknown(entry);
  }
  std::vector<std::string_view> names;
  for (const Artifact& each : kArtifacts) {
    const auto chosen = [&](const std::string& entry) { return selects(entry, each); };
    if ((emit.empty() && !each.on_request) || std::any_of(emit.begin(), emit.end(), chosen))
      names.push_back(each.name);
  }
  return names;
}

std::vector<OutputFile> make_artifacts(const std::vector<std::string_view>& names, const Plan& plan,
                                       const Run& run) {
  std::vector<OutputFile> files;
  for (const Artifact& each : kArtifacts) {
    if (std::find(names.begin(), names.end(), each.name) == names.end()) continue;
    files.push_back(
        {std::string(each.name), [&each, &plan, &run] { return each.make(plan, run); }});
  }
  return files;
}

}  // namespace counterflow
