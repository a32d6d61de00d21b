#include "scheduler/ir/instruction_text.h"

#include <fmt/format.h>

#include "scheduler/ir/schedule_file.h"

namespace counterflow {

std::string called(const RankProgram& rank, const Instruction& what) {
  if (what.kind != InstructionKind::collective) return to_string(what.op);
  const Collective& collective = rank.collectives[what.body.first];
  return called(collective, collective.sequence, what.communicator);
}

std::string called(const Collective& what, std::uint32_t number, CommunicatorId communicator) {
  return fmt::format("{} {} of communicator {}", name(what.kind), number, communicator);
}

}  // namespace counterflow
