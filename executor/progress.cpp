#include "executor/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "scheduler/graph/collective_groups.h"
#include "scheduler/ir/schedule_file.h"

namespace counterflow::exec {
namespace {

using Index = Prerequisites::Index;

class Explainer {
 public:
  Explainer(const Program& program, const Matching& matching, const Prerequisites& prerequisites,
            const Progress& progress)
      : program_(program),
        matching_(matching),
        prerequisites_(prerequisites),
        progress_(progress) {}

  [[nodiscard]] std::string reason(Index index) const {
    const std::uint32_t rank = prerequisites_.rank(index);
    const Instruction& what = instruction(index);
    if (!progress_.begun(index)) {
      return fmt::format("{} waits for an instruction of rank {} that does not end",
                         called(rank, what), rank);
    }
    if (what.kind == InstructionKind::collective) return absent_from(index);
    if (what.kind != InstructionKind::transfer) {
      return fmt::format("{} has begun and does not end", to_string(what.op));
    }
    for (std::uint32_t k = what.body.first; k < what.body.first + what.body.count; ++k) {
      const Matching::End other = matching_.partner(rank, k);
      const Transfer& transfer = program_.ranks[rank].transfers[k];
      if (!other.exists()) {
        return fmt::format("{} waits for rank {}, which has nothing to match it",
                           to_string(what.op), transfer.peer);
      }
      const Index there =
          prerequisites_.index(other.rank, matching_.instruction(other.rank, other.transfer));
      if (progress_.begun(there)) continue;
      return fmt::format("{} waits for {} of rank {}, which has not begun: {}", to_string(what.op),
                         to_string(instruction(there).op), other.rank, doing(other.rank));
    }
    return fmt::format("{} has begun and does not end", to_string(what.op));
  }

 private:
  // What an instruction is called in words.
  [[nodiscard]] std::string called(std::uint32_t rank, const Instruction& what) const {
    if (what.kind != InstructionKind::collective) return to_string(what.op);
    const Collective& collective = program_.ranks[rank].collectives[what.body.first];
    return fmt::format("{} {} of communicator {}", name(collective.kind), collective.sequence,
                       what.communicator);
  }

  // Who does not come to a collective.
  [[nodiscard]] std::string absent_from(Index index) const {
    const std::uint32_t rank = prerequisites_.rank(index);
    const std::string what = called(rank, instruction(index));
    const std::vector<CollectiveGroup> groups = collective_groups(program_);
    const auto group = std::ranges::find_if(groups, [&](const CollectiveGroup& each) {
      return std::ranges::any_of(each.members, [&](const CollectiveGroup::Member& member) {
        return prerequisites_.index(member.rank, member.instruction) == index;
      });
    });
    if (!group->possible) {
      return fmt::format("{} never begins: not every member calls it, or not for the same", what);
    }
    for (const CollectiveGroup::Member& member : group->members) {
      if (progress_.begun(prerequisites_.index(member.rank, member.instruction))) continue;
      return fmt::format("{} waits for rank {}, which has not begun it: {}", what, member.rank,
                         doing(member.rank));
    }
    return fmt::format("{} has begun and does not end", what);
  }

  // The first thing of a rank that is under way, or that has not begun.
  [[nodiscard]] std::string doing(std::uint32_t rank) const {
    const auto size = static_cast<std::uint32_t>(program_.ranks[rank].instructions.size());
    for (std::uint32_t i = 0; i < size; ++i) {
      const Index index = prerequisites_.index(rank, i);
      if (progress_.ended(index)) continue;
      return fmt::format("rank {} is at {}", rank,
                         called(rank, program_.ranks[rank].instructions[i]));
    }
    return fmt::format("rank {} is done", rank);
  }
  [[nodiscard]] const Instruction& instruction(Index index) const {
    return program_.ranks[prerequisites_.rank(index)]
        .instructions[prerequisites_.instruction(index)];
  }

  const Program& program_;
  const Matching& matching_;
  const Prerequisites& prerequisites_;
  const Progress& progress_;
};

}  // namespace

Failure why_stuck(const Program& program, const Matching& matching,
                  const Prerequisites& prerequisites, const Progress& progress, int step) {
  std::optional<Index> first;
  for (Index index = 0; index < prerequisites.size(); ++index) {
    if (progress.ended(index)) continue;
    if (!first) first = index;
    if (progress.begun(index)) {
      first = index;
      break;
    }
  }
  const Index index = first.value_or(0);
  return {static_cast<Rank>(prerequisites.rank(index)), prerequisites.instruction(index), step,
          Explainer(program, matching, prerequisites, progress).reason(index)};
}

}  // namespace counterflow::exec
