#include "report/waits.h"

#include <cstddef>

#include "scheduler/graph/matching.h"
#include "scheduler/graph/recordings.h"

namespace counterflow {
namespace {

std::vector<Wait> waits_of(const Program& program, const Matching& matching, std::uint32_t rank) {
  const RankProgram& list = program.ranks[rank];
  const Recordings recordings(list);
  std::vector<Wait> waits;
  waits.reserve(list.waits.size() + list.transfers.size() / 2);
  for (std::uint32_t i = 0; i < list.instructions.size(); ++i) {
    const Instruction& instruction = list.instructions[i];
    for (const EventWait wait : list.waits_of(instruction)) {
      const std::uint32_t recorder = recordings.recorder(wait);
      if (recorder != kNone) waits.push_back({i, rank, recorder});
    }
    for (std::uint32_t k = 0; k < list.transfers_of(instruction).size(); ++k) {
      const std::uint32_t transfer = instruction.body.first + k;
      const Matching::End sender = matching.partner(rank, transfer);
      if (list.transfers[transfer].is_send || !sender.exists()) continue;
      waits.push_back({i, sender.rank, matching.instruction(sender.rank, sender.transfer)});
    }
  }
  return waits;
}

}  // namespace

std::vector<std::vector<Wait>> waits_of(const Program& program) {
  const Matching matching(program);
  std::vector<std::vector<Wait>> waits;
  for (std::uint32_t rank = 0; rank < program.ranks.size(); ++rank) {
    waits.push_back(waits_of(program, matching, rank));
  }
  return waits;
}

}  // namespace counterflow
