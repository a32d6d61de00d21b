#include <array>
#include <set>
#include <utility>
#include <vector>

#include "scheduler/passes/passes.h"

namespace counterflow {
namespace {

// Activations and gradients travel on communicators of their own: with two ranks, or where a rank's
// next and previous are the same, first-in first-out matching could otherwise mistake one for the
// other.
constexpr std::array kPipelineKinds = {CommunicatorKind::activations, CommunicatorKind::gradients};

std::size_t pipeline_index(const Payload& payload) {
  return payload.kind == PayloadKind::gradient ? 1 : 0;
}

void number_messages(RankProgram& rank, std::size_t ranks) {
  // [communicator][direction][peer]
  std::vector<std::uint32_t> next(kPipelineKinds.size() * 2 * ranks);
  for (Transfer& transfer : rank.transfers) {
    const std::size_t channel =
        (pipeline_index(transfer.payload) * 2 + (transfer.is_send ? 1 : 0)) * ranks + transfer.peer;
    transfer.sequence = next[channel]++;
  }
}

}  // namespace

Program assign_communicators(const Problem& problem, Program program) {
  std::array<std::set<Rank>, kPipelineKinds.size()> members;
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) {
    number_messages(program.ranks[rank], static_cast<std::size_t>(problem.ranks()));
    std::array<bool, kPipelineKinds.size()> used{};
    for (const Transfer& transfer : program.ranks[rank].transfers) {
      used[pipeline_index(transfer.payload)] = true;
    }
    for (std::size_t kind = 0; kind < used.size(); ++kind) {
      if (used[kind]) members[kind].insert(static_cast<Rank>(rank));
    }
  }
  std::array<CommunicatorId, kPipelineKinds.size()> ids{};
  for (std::size_t kind = 0; kind < members.size(); ++kind) {
    if (members[kind].empty()) continue;
    ids[kind] = static_cast<CommunicatorId>(program.communicators.size());
    program.communicators.push_back(
        {.kind = kPipelineKinds[kind], .members = {members[kind].begin(), members[kind].end()}});
  }
  for (RankProgram& rank : program.ranks) {
    for (Instruction& instruction : rank.instructions) {
      if (instruction.kind != InstructionKind::transfer) continue;
      instruction.communicator =
          ids[pipeline_index(rank.transfers[instruction.body.first].payload)];
    }
  }
  return program;
}

}  // namespace counterflow
