#include "report/report_json.h"

#include <limits>
#include <string>
#include <string_view>

#include "report/json/writer.h"
#include "scheduler/ir/op.h"

namespace counterflow {
namespace {

void append_rank(std::string& out, const RankReport& rank) {
  json::Object object(out);
  object.add("busy_ns", rank.busy.count());
  object.add("idle_ns", rank.idle.count());
  object.add("first_start_ns", rank.first_start.count());
  object.add("last_end_ns", rank.last_end.count());
  object.add("peak_activations", rank.peak_activations);
  object.add("peak_in_flight", rank.peak_in_flight);
  object.add("peak_memory_bytes", rank.peak_memory.value);
  object.add("comm_exposed_ns", rank.comm_exposed.count());
  object.add("stages_held", std::int64_t{rank.stages_held});
  object.close();
}

void append_consecutive(std::string& out, const ConsecutiveSteps& consecutive) {
  json::Object object(out);
  object.add("steps", std::int64_t{consecutive.steps});
  object.add("makespan_ns", consecutive.makespan.count());
  object.add("steady_step_ns", consecutive.step.count());
  json::Array ranks(object.member("peak_memory_bytes"));
  for (const Bytes peak : consecutive.peak_memory) ranks.add(peak.value);
  ranks.close();
  object.close();
}

void append_trials(std::string& out, const Trials& trials) {
  json::Object object(out);
  object.add("trials", std::int64_t{trials.count});
  object.member("seed") += std::to_string(trials.seed);
  json::Object makespan(object.member("makespan_ns"));
  makespan.add("mean", trials.mean_ns);
  makespan.add("min", trials.least.count());
  makespan.add("p5", trials.p5.count());
  makespan.add("p50", trials.median.count());
  makespan.add("p95", trials.p95.count());
  makespan.add("max", trials.most.count());
  makespan.close();
  json::Object sensitivity(object.member("sensitivity"));
  sensitivity.add("step", trials.sensitivity_step);
  sensitivity.add("trials", std::int64_t{trials.sensitivity_trials});
  json::Array ranks(sensitivity.member("ranks"));
  for (const Trials::OfRank& rank : trials.ranks) ranks.add(rank.sensitivity);
  ranks.close();
  json::Array links(sensitivity.member("links"));
  for (const Trials::OfLink& link : trials.links) {
    json::Object entry(links.element());
    entry.add("from", std::int64_t{link.from});
    entry.add("to", std::int64_t{link.to});
    entry.add("sensitivity", link.sensitivity);
    entry.close();
  }
  links.close();
  sensitivity.close();
  object.close();
}

void append_figures(std::string& out, const Robustness::Figures& figures) {
  json::Object object(out);
  object.add("makespan_ns", figures.makespan.count());
  object.add("mean_ns", figures.mean.count());
  object.add("p95_ns", figures.p95.count());
  object.close();
}

void append_robustness(std::string& out, const Robustness& robustness) {
  json::Object object(out);
  object.add("goal", robustness.goal);
  if (!robustness.scenario.empty()) object.add("scenario", robustness.scenario);
  object.add("trials", std::int64_t{robustness.trials});
  object.member("seed") += std::to_string(robustness.seed);
  append_figures(object.member("chosen"), robustness.chosen);
  append_figures(object.member("fastest"), robustness.fastest);
  object.add("price_ns", robustness.price().count());
  object.add("gain_ns", robustness.gain().count());
  object.close();
}

RankReport read_rank(const json::Node& node) {
  RankReport rank;
  rank.busy = Time{node.at("busy_ns").integer(0)};
  rank.idle = Time{node.at("idle_ns").integer()};
  rank.first_start = Time{node.at("first_start_ns").integer(0)};
  rank.last_end = Time{node.at("last_end_ns").integer(rank.first_start.count())};
  rank.peak_activations = node.at("peak_activations").integer(0);
  rank.peak_in_flight = node.at("peak_in_flight").integer(0);
  rank.peak_memory = Bytes{node.at("peak_memory_bytes").integer(0)};
  rank.comm_exposed = Time{node.at("comm_exposed_ns").integer(0)};
  rank.stages_held = static_cast<int>(node.at("stages_held").integer(0, kMaxStages));
  return rank;
}

ConsecutiveSteps read_consecutive(const json::Node& node, int ranks) {
  ConsecutiveSteps consecutive;
  consecutive.steps =
      static_cast<int>(node.at("steps").integer(2, std::numeric_limits<int>::max()));
  consecutive.makespan = Time{node.at("makespan_ns").integer(0)};
  consecutive.step = Time{node.at("steady_step_ns").integer(0)};
  const json::Node peaks = node.at("peak_memory_bytes");
  if (peaks.size() != static_cast<std::size_t>(ranks)) {
    peaks.fail("expected one entry for each of the ranks");
  }
  for (std::size_t r = 0; r < peaks.size(); ++r) {
    consecutive.peak_memory.push_back(Bytes{peaks.at(r).integer(0)});
  }
  return consecutive;
}

}  // namespace

void append_json(std::string& out, const Report& report) {
  json::Object object(out, ",\n ");
  object.add("schema_version", std::int64_t{kSchemaVersion});
  object.add("schedule", report.schedule);
  object.add("ranks", std::int64_t{report.ranks});
  object.add("stages", std::int64_t{report.stages});
  object.add("microbatches", std::int64_t{report.microbatches});
  object.add("execution", report.execution);
  object.add("makespan_ns", report.makespan.count());
  object.add("span_ns", report.span.count());
  object.add("bubble_fraction", report.bubble_fraction);
  object.add("span_bubble_fraction", report.span_bubble_fraction);
  object.add("lower_bound_ns", report.lower_bound.count());
  if (!report.bound_argument.empty()) object.add("lower_bound_by", report.bound_argument);
  object.add("gap", report.gap);
  if (report.step) object.add("step_ns", report.step->count());
  if (report.formula_idle) {
    json::Object formula(object.member("formula"));
    formula.add("idle_ns", report.formula_idle->count());
    formula.add("source", report.formula_source);
    formula.close();
  }
  const auto add_stages = [&](std::string_view key, const std::vector<Stage>& stages) {
    if (stages.empty()) return;
    json::Array list(object.member(key));
    for (const Stage stage : stages) list.add(std::int64_t{stage});
    list.close();
  };
  add_stages("recompute", report.recompute);
  add_stages("offload", report.offload);
  const auto add_texts = [&](std::string_view key, const std::vector<std::string>& texts) {
    json::Array list(object.member(key));
    for (const std::string& text : texts) list.add(text);
    list.close();
  };
  add_texts("notes", report.notes);
  add_texts("warnings", report.warnings);
  json::Array per_rank(object.member("per_rank"), ",\n  ");
  for (const RankReport& rank : report.per_rank) append_rank(per_rank.element(), rank);
  per_rank.close();
  if (report.consecutive) {
    append_consecutive(object.member("consecutive_steps"), *report.consecutive);
  }
  if (report.trials) append_trials(object.member("monte_carlo"), *report.trials);
  if (report.robustness) append_robustness(object.member("robustness"), *report.robustness);
  object.close();
}

std::string to_json(const Report& report) {
  std::string out;
  append_json(out, report);
  out += '\n';
  return out;
}

Report read_report(const json::Node& node) {
  constexpr std::int64_t kMaxCount = std::numeric_limits<int>::max();
  Report report;
  (void)node.at("schema_version").integer(kSchemaVersion, kSchemaVersion);
  report.schedule = node.at("schedule").text();
  report.ranks = static_cast<int>(node.at("ranks").integer(0, kMaxCount));
  report.stages = static_cast<int>(node.at("stages").integer(0, kMaxCount));
  report.microbatches = static_cast<int>(node.at("microbatches").integer(0, kMaxCount));
  report.execution = node.at("execution").text();
  report.makespan = Time{node.at("makespan_ns").integer(0)};
  report.span = Time{node.at("span_ns").integer(0)};
  report.bubble_fraction = node.at("bubble_fraction").number();
  report.span_bubble_fraction = node.at("span_bubble_fraction").number();
  report.lower_bound = Time{node.at("lower_bound_ns").integer(0)};
  if (node.has("lower_bound_by")) report.bound_argument = node.at("lower_bound_by").text();
  report.gap = node.at("gap").number();
  if (node.has("step_ns")) report.step = Time{node.at("step_ns").integer(0)};
  if (node.has("formula")) {
    const json::Node formula = node.at("formula");
    report.formula_idle = Time{formula.at("idle_ns").integer()};
    report.formula_source = formula.at("source").text();
  }
  const auto read_stages = [&](std::string_view key, std::vector<Stage>& stages) {
    if (!node.has(key)) return;
    const json::Node list = node.at(key);
    for (std::size_t i = 0; i < list.size(); ++i) {
      stages.push_back(static_cast<Stage>(list.at(i).integer(0, kMaxStages - 1)));
    }
  };
  read_stages("recompute", report.recompute);
  read_stages("offload", report.offload);
  const auto read_texts = [&](std::string_view key, std::vector<std::string>& texts) {
    const json::Node list = node.at(key);
    for (std::size_t i = 0; i < list.size(); ++i) texts.push_back(list.at(i).text());
  };
  if (node.has("notes")) read_texts("notes", report.notes);
  read_texts("warnings", report.warnings);
  const json::Node per_rank = node.at("per_rank");
  for (std::size_t r = 0; r < per_rank.size(); ++r) {
    report.per_rank.push_back(read_rank(per_rank.at(r)));
  }
  if (report.per_rank.size() != static_cast<std::size_t>(report.ranks)) {
    per_rank.fail("expected one entry for each of the ranks");
  }
  if (node.has("consecutive_steps")) {
    report.consecutive = read_consecutive(node.at("consecutive_steps"), report.ranks);
  }
  return report;
}

}  // namespace counterflow
