#include <fmt/format.h>

#include <optional>
#include <string>

#include "scheduler/ir/diagnostic_text.h"
#include "scheduler/ir/schedule_file.h"
#include "scheduler/verify/rules.h"

// A large group is cut into several launches, by each rank at other places, so that ends which
// belong together wait for each other across a cut. NCCL stays whole within these limits.
namespace counterflow::rules {
namespace {

constexpr std::size_t kMostTransfers = 8;

struct Fault {
  std::string message;
  std::size_t transfer = 0;  // the first in the group that is too much
};

std::optional<Fault> fault_of(std::span<const Transfer> group) {
  if (group.size() > kMostTransfers) {
    return Fault{fmt::format("holds {} transfers; a group of more than {} may be cut into several, "
                             "not at the same place on both ends: issue it as smaller groups",
                             group.size(), kMostTransfers),
                 kMostTransfers};
  }
  for (std::size_t k = 1; k < group.size(); ++k) {
    for (std::size_t j = 0; j < k; ++j) {
      if (group[j].peer != group[k].peer || group[j].is_send != group[k].is_send) continue;
      return Fault{
          fmt::format("holds two {} rank {}; pack them into one message, or issue them one "
                      "after the other",
                      group[k].is_send ? "sends to" : "receives from", group[k].peer),
          k};
    }
  }
  return std::nullopt;
}

}  // namespace

void group(const Program& program, Diagnostics& out) {
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) {
    const RankProgram& list = program.ranks[rank];
    for (std::size_t i = 0; i < list.instructions.size(); ++i) {
      const Instruction& instruction = list.instructions[i];
      if (instruction.kind != InstructionKind::transfer || instruction.body.count < 2) continue;
      const std::span<const Transfer> transfers = list.transfers_of(instruction);
      const std::optional<Fault> fault = fault_of(transfers);
      if (!fault) continue;
      out.push_back({.rule = "group",
                     .rank = static_cast<Rank>(rank),
                     .index = static_cast<std::int64_t>(i),
                     .op = op_of(instruction, transfers[fault->transfer]),
                     .message = fault->message});
    }
  }
}

}  // namespace counterflow::rules
