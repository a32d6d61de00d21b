#include "driver/consecutive.h"

#include <utility>

#include "scheduler/passes/in_steps.h"
#include "scheduler/problem/steps.h"

namespace counterflow {

Verdict check_in_steps(const Plan& plan, const Program& program, int steps,
                       std::span<const Semantics> asked) {
  const Problem one = plan.whole();
  const Problem all = in_steps(one, steps);
  Verdict verdict;
  verdict.lowered = in_steps(one, program, steps);
  ProgramVerdict found = plan.brings_communication()
                             ? verify_communication(all, *verdict.lowered, asked)
                             : verify(all, *verdict.lowered, asked);
  verdict.program = std::move(found.diagnostics);
  verdict.semantics = std::move(found.semantics);
  return verdict;
}

}  // namespace counterflow
