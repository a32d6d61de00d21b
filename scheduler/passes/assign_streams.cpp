#include <string>
#include <utility>
#include <vector>

#include "scheduler/error.h"
#include "scheduler/passes/passes.h"

namespace counterflow {

Program assign_streams(const Problem& problem, Program program) {
  const auto ranks = static_cast<std::size_t>(problem.ranks());
  for (std::size_t number = 0; number < program.ranks.size(); ++number) {
    RankProgram& rank = program.ranks[number];
    std::vector<std::uint8_t> stream_of(2 * ranks);  // [direction][peer], 0: none yet
    for (Instruction& instruction : rank.instructions) {
      if (instruction.kind != InstructionKind::transfer) continue;
      const Transfer& transfer = rank.transfers[instruction.body.first];
      std::uint8_t& stream = stream_of[(transfer.is_send ? ranks : 0) + transfer.peer];
      if (stream == 0) {
        if (rank.streams.size() == kMaxStreams) {
          throw InfeasibleError("rank " + std::to_string(number) +
                                " exchanges data with more than " +
                                std::to_string((kMaxStreams - 1) / 2) +
                                " ranks; place stages that feed each other closer together");
        }
        stream = static_cast<std::uint8_t>(rank.streams.size());
        rank.streams.push_back({.role = StreamRole::p2p,
                                .priority = 0,
                                .label = (transfer.is_send ? "send to " : "receive from ") +
                                         std::to_string(transfer.peer)});
      }
      instruction.stream = stream;
    }
  }
  return program;
}

}  // namespace counterflow
