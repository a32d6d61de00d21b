#include <fmt/format.h>

#include "scheduler/graph/recordings.h"
#include "scheduler/ir/schedule_file.h"
#include "scheduler/verify/rules.h"

namespace counterflow::rules {

void events(const Program& program, Diagnostics& out) {
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) {
    const RankProgram& list = program.ranks[rank];
    const Recordings recordings(list);
    for (std::uint32_t i = 0; i < list.instructions.size(); ++i) {
      const Instruction& instruction = list.instructions[i];
      for (const EventWait& wait : list.waits_of(instruction)) {
        const std::uint32_t source = recordings.recorder(wait);
        if (source != kNone && source < i) continue;
        out.push_back({.rule = "order",
                       .rank = static_cast<Rank>(rank),
                       .index = i,
                       .op = instruction.op,
                       .message = source == kNone
                                      ? std::string("waits for an event that is never recorded")
                                      : fmt::format("comes before {}, which it needs",
                                                    to_string(list.instructions[source].op))});
      }
    }
  }
}

}  // namespace counterflow::rules
