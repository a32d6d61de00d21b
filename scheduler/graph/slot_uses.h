#pragma once

#include "scheduler/ir/program.h"

namespace counterflow {

// Calls visit(Access) for every buffer slot an instruction uses: what a run names, where a send
// leaves from (a read), where a receive arrives and what a collective works on (writes).
template <typename Visit>
void for_each_use(const RankProgram& rank, const Instruction& instruction, Visit visit) {
  for (const Access& access : rank.accesses_of(instruction)) visit(access);
  for (const Transfer& transfer : rank.transfers_of(instruction)) {
    if (transfer.slot == kNone) continue;
    visit(Access{.slot = transfer.slot,
                 .version = transfer.version & 0x7fffffffU,
                 .is_write = transfer.is_send ? 0U : 1U});
  }
  for (const Collective& collective : rank.collectives_of(instruction)) {
    if (collective.slot == kNone) continue;
    visit(Access{
        .slot = collective.slot, .version = collective.version & 0x7fffffffU, .is_write = 1});
  }
}

}  // namespace counterflow
