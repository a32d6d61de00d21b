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
  if (found.empty()) verify_compute(problem, file.compute(), found);
  return found;
}

ProgramVerdict verify(const Problem& problem, const Program& program,
                      std::span<const Semantics> asked) {
  ProgramVerdict verdict;
  rules::matching(problem, program, verdict.diagnostics);
  rules::events(program, verdict.diagnostics);
  verdict.semantics = verdicts(program);
  for (const auto& [semantics, completes] : verdict.semantics) {
    if (!completes && std::ranges::find(asked, semantics) != asked.end()) {
      rules::deadlock(program, semantics, verdict.diagnostics);
    }
  }
  return verdict;
}

}  // namespace counterflow
