#include "scheduler/passes/passes.h"

namespace counterflow {

Program compress_messages(const Problem& problem, Program program) {
  if (!problem.compression.any()) return program;
  for (RankProgram& rank : program.ranks) {
    for (Transfer& transfer : rank.transfers) {
      if (transfer.payload.kind == PayloadKind::metadata) continue;
      transfer.type = problem.wire_type(transfer.payload.from, transfer.payload.to);
      transfer.size = packed_size(transfer.type, transfer.size);
    }
  }
  return program;
}

}  // namespace counterflow
