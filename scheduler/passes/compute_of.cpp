#include "scheduler/passes/compute_of.h"

namespace counterflow {

Schedule compute_of(const Program& program) {
  Schedule schedule;
  schedule.name = program.schedule;
  schedule.ranks.resize(program.ranks.size());
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) {
    schedule.ranks[rank].reserve(program.ranks[rank].instructions.size());
    for (const Instruction& i : program.ranks[rank].instructions) {
      if (i.kind != InstructionKind::run || !is_compute(i.op.kind)) continue;
      schedule.ranks[rank].push_back({i.op, i.paired});
    }
  }
  return schedule;
}

}  // namespace counterflow
