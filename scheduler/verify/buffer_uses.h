#pragma once

#include "scheduler/ir/program.h"

namespace counterflow::rules {

// Calls visit(Access) for every buffer slot an instruction uses: what a run names, where a send
// leaves from (a read), where a receive arrives (a write).
template <typename Visit>
void for_each_use(const RankProgram& rank, const Instruction& instruction, Visit visit) {
  for (const Access& access : rank.accesses_of(instruction)) visit(access);
  for (const Transfer& transfer : rank.transfers_of(instruction)) {
    if (transfer.slot == kNone) continue;
    visit(Access{.slot = transfer.slot,
                 .version = transfer.version & 0x7fffffffU,
                 .is_write = transfer.is_send ? 0U : 1U});
  }
}

}  // namespace counterflow::rules
