#include "scheduler/verify/verify.h"

#include <algorithm>

#include "scheduler/verify/rules.h"

namespace counterflow {
namespace {

void verify_compute(const Problem& problem, const Schedule& schedule, Diagnostics& found) {
  rules::complete(problem, schedule, found);
  rules::order(problem, schedule, found);
  // An order that breaks within a rank would show up again as a cycle.
  const bool ordered = std::ranges::none_of(found, [](const auto& d) { return d.rule == "order"; });
  if (ordered) rules::acyclic(problem, schedule, found);
  rules::memory(problem, schedule, found);
}

// Turns positions among a row's computes into positions among all its actions.
void count_all_actions(const ScheduleFile& file, Diagnostics& faults) {
  std::vector<std::vector<std::int64_t>> positions(file.rows.size());
  for (std::size_t rank = 0; rank < file.rows.size(); ++rank) {
    const auto& row = file.rows[rank];
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (row[i].form == Action::Form::group || !is_compute(row[i].op.kind)) continue;
      positions[rank].push_back(static_cast<std::int64_t>(i));
    }
  }
  for (Diagnostic& fault : faults) {
    if (!fault.rank || !fault.index) continue;
    fault.index =
        positions[static_cast<std::size_t>(*fault.rank)][static_cast<std::size_t>(*fault.index)];
  }
}

// If a program completes under rendezvous it does under the other two: they ask for less. So the
// usual case costs one check.
std::vector<SemanticsVerdict> verdicts(const Program& program) {
  const bool strictest = rules::completes(program, Semantics::rendezvous);
  std::vector<SemanticsVerdict> result;
  for (const Semantics semantics : kAllSemantics) {
    const bool known = strictest || semantics == Semantics::rendezvous;
    result.push_back({semantics, known ? strictest : rules::completes(program, semantics)});
  }
  return result;
}

}  // namespace

Diagnostics verify(const Problem& problem, const Schedule& schedule) {
  Diagnostics found;
  rules::range(problem, schedule, found);
  if (found.empty()) verify_compute(problem, schedule, found);
  return found;
}

Diagnostics verify(const Problem& problem, const ScheduleFile& file) {
  Diagnostics found;
  rules::range(problem, file, found);
  if (!found.empty()) return found;
  verify_compute(problem, file.compute(), found);
  count_all_actions(file, found);
  rules::stage_actions(file, found);
  return found;
}

ProgramVerdict verify(const Problem& problem, const Program& program,
                      std::span<const Semantics> asked) {
  ProgramVerdict verdict;
  rules::matching(problem, program, verdict.diagnostics);
  rules::events(program, verdict.diagnostics);
  rules::buffers(problem, program, verdict.diagnostics);
  rules::races(program, verdict.diagnostics);
  verdict.semantics = verdicts(program);
  for (const auto& [semantics, completes] : verdict.semantics) {
    if (!completes && std::ranges::find(asked, semantics) != asked.end()) {
      rules::deadlock(program, semantics, verdict.diagnostics);
    }
  }
  return verdict;
}

}  // namespace counterflow
