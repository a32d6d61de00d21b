#include <set>
#include <utility>
#include <vector>

#include "scheduler/passes/passes.h"

namespace counterflow {
namespace {

class Assignment {
 public:
  Assignment(const Program& program, std::vector<CommunicatorKind> kinds)
      : kinds_(std::move(kinds)), members_(kinds_.size()), ids_(kinds_.size()) {
    for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) {
      for (const Transfer& transfer : program.ranks[rank].transfers) {
        members_[index_of(transfer)].insert(static_cast<Rank>(rank));
      }
    }
  }

  // Those that are used.
  [[nodiscard]] std::vector<Communicator> communicators() {
    std::vector<Communicator> made;
    for (std::size_t k = 0; k < kinds_.size(); ++k) {
      if (members_[k].empty()) continue;
      ids_[k] = static_cast<CommunicatorId>(made.size());
      made.push_back({.kind = kinds_[k], .members = {members_[k].begin(), members_[k].end()}});
    }
    return made;
  }

  [[nodiscard]] CommunicatorId of(const Transfer& transfer) const {
    return ids_[index_of(transfer)];
  }

  void number_messages(RankProgram& rank, std::size_t ranks) const {
    // [communicator][direction][peer]
    std::vector<std::uint32_t> next(kinds_.size() * 2 * ranks);
    for (Transfer& transfer : rank.transfers) {
      const std::size_t channel =
          (index_of(transfer) * 2 + (transfer.is_send ? 1 : 0)) * ranks + transfer.peer;
      transfer.sequence = next[channel]++;
    }
  }

 private:
  [[nodiscard]] std::size_t index_of(const Transfer& transfer) const {
    return kinds_.size() > 1 && transfer.payload.kind == PayloadKind::gradient ? 1 : 0;
  }

  std::vector<CommunicatorKind> kinds_;
  std::vector<std::set<Rank>> members_;  // [kind]
  std::vector<CommunicatorId> ids_;      // [kind]
};

Program assigned(const Problem& problem, Program program, std::vector<CommunicatorKind> kinds) {
  Assignment assignment(program, std::move(kinds));
  program.communicators = assignment.communicators();
  for (RankProgram& rank : program.ranks) {
    assignment.number_messages(rank, static_cast<std::size_t>(problem.ranks()));
    for (Instruction& instruction : rank.instructions) {
      if (instruction.kind != InstructionKind::transfer) continue;
      instruction.communicator = assignment.of(rank.transfers[instruction.body.first]);
    }
  }
  return program;
}

}  // namespace

// With two ranks, or where a rank's next and previous are the same, first-in first-out matching
// could otherwise mistake an activation for a gradient.
Program assign_communicators(const Problem& problem, Program program) {
  return assigned(problem, std::move(program),
                  {CommunicatorKind::activations, CommunicatorKind::gradients});
}

Program assign_one_communicator(const Problem& problem, Program program) {
  return assigned(problem, std::move(program), {CommunicatorKind::pipeline});
}

}  // namespace counterflow
