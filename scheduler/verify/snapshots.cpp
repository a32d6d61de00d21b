#include <fmt/format.h>

#include <cstdint>

#include "scheduler/ir/schedule_file.h"
#include "scheduler/verify/rules.h"

namespace counterflow::rules {
namespace {

// Where a rank first holds more than it may, and it is what STEP keeps that makes it so: else rule
// `memory` of the order says it.
void check_rank(const Problem& problem, const Program& program, std::size_t rank,
                Diagnostics& out) {
  const RankProgram& list = program.ranks[rank];
  const Bytes limit = problem.limits.bytes[rank];
  Bytes held = list.static_memory;
  Bytes kept;
  for (std::uint32_t i = 0; i < list.instructions.size(); ++i) {
    const Instruction& instruction = list.instructions[i];
    if (instruction.kind != InstructionKind::run) continue;
    const Kernel& kernel = program.kernels[instruction.kernel];
    held += kernel.allocates;
    if (kernel.kind == OpKind::optimizer_step) kept += kernel.allocates;
    if (held > limit && held - kept <= limit) {
      out.push_back(
          {.rule = "memory",
           .rank = static_cast<Rank>(rank),
           .index = i,
           .op = instruction.op,
           .message = fmt::format("rank {} needs {} B here, {} B of it parameters as they were "
                                  "before a step that is not validated yet, its limit is {} B; "
                                  "raise memory.limit or set optimizer.validation: before",
                                  rank, held.value, kept.value, limit.value)});
      return;
    }
    held -= kernel.frees;
    if (kernel.kind == OpKind::validate_step) kept -= kernel.frees;
  }
}

}  // namespace

void snapshots(const Problem& problem, const Program& program, Diagnostics& out) {
  if (!problem.optimizer || !problem.optimizer->validates() || problem.limits.bytes.empty()) return;
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) {
    check_rank(problem, program, rank, out);
  }
}

}  // namespace counterflow::rules
