#include "driver/consecutive.h"

#include <fmt/format.h>

#include <utility>

#include "scheduler/passes/in_steps.h"
#include "scheduler/problem/steps.h"

namespace counterflow {
namespace {

double count(Time time) {
  return static_cast<double>(time.count());
}

// Nanoseconds of everything in a program one after the other.
double total_time(const Program& program, const Links& links) {
  double total = 0;
  for (const RankProgram& rank : program.ranks) {
    for (const Instruction& i : rank.instructions) {
      if (i.kind == InstructionKind::run) total += count(program.kernels[i.kernel].duration);
    }
    for (const Transfer& transfer : rank.transfers)
      total += count(links.longest_hop(transfer.size));
    for (const Collective& collective : rank.collectives) {
      // Round a ring twice, or from all to all.
      total += 2.0 * static_cast<double>(program.ranks.size()) *
               count(links.longest_hop(collective.size));
    }
  }
  return total;
}

}  // namespace

Verdict check_in_steps(const Plan& plan, const Program& program, int steps,
                       std::span<const Semantics> asked) {
  const Problem one = plan.whole();
  if (steps * total_time(program, one.links) >= static_cast<double>(kMaxTotal)) {
    throw InfeasibleError(fmt::format(
        "the durations of {} steps may sum to 2^62 ns (146 years) or more; take fewer", steps));
  }
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
