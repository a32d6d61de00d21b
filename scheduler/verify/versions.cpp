#include <fmt/format.h>

#include <cstdint>
#include <vector>

#include "scheduler/ir/schedule_file.h"
#include "scheduler/verify/buffer_uses.h"
#include "scheduler/verify/rules.h"

namespace counterflow::rules {

// In issue order, for where two uses may be in another order they are a race.
void versions(const Program& program, Diagnostics& out) {
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) {
    const RankProgram& list = program.ranks[rank];
    std::vector<std::uint32_t> held(list.slots.size(), 0);
    for (std::uint32_t i = 0; i < list.instructions.size(); ++i) {
      const Instruction& instruction = list.instructions[i];
      for_each_use(list, instruction, [&](const Access& use) {
        if (held[use.slot] + use.is_write != use.version) {
          out.push_back({.rule = "version",
                         .rank = static_cast<Rank>(rank),
                         .index = i,
                         .op = instruction.op,
                         .message = fmt::format(
                             "{} {} version {} of buffer slot {}, which holds version {} by then",
                             to_string(instruction.op), use.is_write ? "makes" : "reads",
                             std::uint32_t{use.version}, use.slot, held[use.slot])});
        }
        if (use.is_write) held[use.slot] = use.version;
      });
    }
  }
}

}  // namespace counterflow::rules
