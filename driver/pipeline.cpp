#include "driver/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "driver/faults.h"
#include "driver/warnings.h"
#include "scheduler/bounds/lower_bound.h"
#include "scheduler/graph/evaluate.h"
#include "scheduler/ir/schedule_file.h"
#include "simulator/simulate.h"

namespace counterflow {
namespace {

bool has_fault_of(const Diagnostics& faults, std::initializer_list<std::string_view> rules) {
  return std::any_of(faults.begin(), faults.end(), [&](const Diagnostic& fault) {
    return std::find(rules.begin(), rules.end(), fault.rule) != rules.end();
  });
}

// Does every op name a stage, a microbatch and a rank that there are? Only then can it be lowered.
bool is_in_range(const Diagnostics& faults) {
  return !has_fault_of(faults, {"range", "rank"});
}

// What all three semantics make of an order that is not lowered, its transfers only inferred or not
// to be trusted: they stop where the order itself does. Empty: not even the order can be followed.
std::vector<SemanticsVerdict> verdicts_of_order(const Plan& plan, const Diagnostics& faults) {
  if (has_fault_of(faults, {"range", "rank", "complete"})) return {};
  const bool completes = Evaluator(plan.problem).makespan(plan.schedule) >= Time{0};
  std::vector<SemanticsVerdict> verdicts;
  for (const Semantics each : kAllSemantics) verdicts.push_back({each, completes});
  return verdicts;
}

double gap(Time makespan, Time bound) {
  if (bound.count() == 0) return 0;
  return static_cast<double>(makespan.count()) / static_cast<double>(bound.count()) - 1;
}

}  // namespace

Verdict check(const Plan& plan, std::span<const Semantics> asked, const PassObserver& observer) {
  Verdict verdict;
  verdict.order =
      plan.file ? verify(plan.problem, *plan.file) : verify(plan.problem, plan.schedule);
  const bool as_it_stands = plan.brings_communication();
  const bool lowers = as_it_stands ? is_in_range(verdict.order) : verdict.order.empty();
  if (!lowers) {
    verdict.semantics = verdicts_of_order(plan, verdict.order);
    return verdict;
  }
  const Problem whole = plan.whole();
  verdict.lowered = as_it_stands ? import(whole, *plan.file, observer)
                                 : compile(whole, in_copies(plan.problem, plan.schedule), observer);
  // A file's own computes are judged already.
  ProgramVerdict found = as_it_stands ? verify_communication(whole, *verdict.lowered, asked)
                                      : verify(whole, *verdict.lowered, asked);
  verdict.program = std::move(found.diagnostics);
  verdict.semantics = std::move(found.semantics);
  return verdict;
}

Timeline timeline_of(const Plan& plan, const Program& program) {
  Simulation simulation = simulate(program, plan.whole().links, plan.config.execution);
  if (!simulation.diagnostics.empty()) {
    const std::string text =
        fmt::format("the program gets stuck under execution '{}'\n{}", plan.config.execution.name,
                    to_text(simulation.diagnostics, GridOf{to_csv(program)}));
    throw FaultyError(text, std::move(simulation.diagnostics));
  }
  return std::move(simulation.timeline);
}

Run run(const Plan& plan, Program program) {
  Timeline timeline = timeline_of(plan, program);
  Report report = make_report(plan, program, timeline);
  return {std::move(program), std::move(timeline), std::move(report)};
}

Report make_report(const Plan& plan, const Program& program, const Timeline& timeline) {
  const Problem& problem = plan.problem;
  Report report = measure(program, timeline);
  report.schedule = plan.family != nullptr ? std::string(plan.family->name) : plan.schedule.name;
  report.execution = plan.config.execution.name;
  // What a search proved holds whatever the stages keep; this choice alone may have a higher bound.
  LowerBound bound = plan.proven;
  if (bound.value == Time{0} || problem.keeping_options.empty()) {
    if (const LowerBound plain = best_lower_bound(problem); plain.value > bound.value) {
      bound = plain;
    }
  }
  report.lower_bound = bound.value;
  report.bound_argument = bound.argument;
  report.gap = gap(report.makespan, report.lower_bound);
  if (plan.family != nullptr && plan.family->formula != nullptr && problem.phases.empty()) {
    if (auto formula = plan.family->formula(problem)) {
      report.formula_idle = formula->idle;
      report.formula_source = std::move(formula->source);
    }
  }
  report.notes = plan.notes;
  report.warnings = warnings(plan, report);
  return report;
}

}  // namespace counterflow
