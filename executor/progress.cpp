#include "executor/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "scheduler/graph/collective_groups.h"
#include "scheduler/ir/instruction_text.h"
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

  // Of a rank that is there, if there is one.
  [[nodiscard]] Index first_blocked() const {
    std::optional<Index> first;
    for (Index index = 0; index < prerequisites_.size(); ++index) {
      if (progress_.ended(index) || !gone(prerequisites_.rank(index)).empty()) continue;
      if (progress_.begun(index)) return index;
      if (!first) first = index;
    }
    return first.value_or(0);
  }

  [[nodiscard]] std::string reason(Index index) const {
    const std::uint32_t rank = prerequisites_.rank(index);
    const Instruction& what = instruction(index);
    if (!progress_.begun(index)) {
      return fmt::format("{} waits for an instruction of rank {} that does not end",
                         called(program_.ranks[rank], what), rank);
    }
    if (what.kind == InstructionKind::collective) return absent_from(index);
    const std::optional<std::uint32_t> waiting = waits_for(index);
    if (!waiting) return fmt::format("{} has begun and does not end", to_string(what.op));
    const Transfer& transfer = program_.ranks[rank].transfers[*waiting];
    const Matching::End other = matching_.partner(rank, *waiting);
    if (!other.exists()) {
      return fmt::format("{} waits for rank {}, which has nothing to match it", to_string(what.op),
                         transfer.peer);
    }
    const Index there = owner(other);
    const std::string at =
        fmt::format("{} of rank {}", to_string(instruction(there).op), other.rank);
    if (const std::string why = gone(other.rank); !why.empty()) {
      return fmt::format("{} waits for {}: rank {} {}", to_string(what.op), at, other.rank, why);
    }
    if (progress_.begun(there)) {
      return fmt::format("{} waits for {}, which has {}: {} does not arrive", to_string(what.op),
                         at, progress_.ended(there) ? "ended" : "begun",
                         describe(transfer.payload));
    }
    return fmt::format("{} waits for {}, which has not begun: {}", to_string(what.op), at,
                       doing(other.rank));
  }

  // Follows what waits for what to where it ends.
  [[nodiscard]] ChainEnd chain(Index index) const {
    std::vector<Index> seen;
    while (std::ranges::find(seen, index) == seen.end()) {
      const Index last = seen.empty() ? index : seen.back();
      seen.push_back(index);
      const Link link = next(index, last);
      if (const auto* end = std::get_if<ChainEnd>(&link)) return *end;
      index = std::get<Index>(link);
    }
    return {ChainEnd::Kind::cycle, index, std::nullopt};
  }

 private:
  [[nodiscard]] std::string gone(std::uint32_t rank) const {
    return progress_.gone ? progress_.gone(rank) : std::string();
  }
  [[nodiscard]] std::optional<Lack> lacks(Index index) const {
    return progress_.lacks ? progress_.lacks(index) : std::nullopt;
  }
  [[nodiscard]] Index owner(Matching::End end) const {
    return prerequisites_.index(end.rank, matching_.instruction(end.rank, end.transfer));
  }

  // What an instruction waits for in its turn, or the end of the chain. `last` waits for it.
  using Link = std::variant<Index, ChainEnd>;
  [[nodiscard]] Link next(Index index, Index last) const {
    const auto here = static_cast<Rank>(prerequisites_.rank(index));
    const ChainEnd busy{ChainEnd::Kind::busy, last, here};
    if (!progress_.begun(index)) {
      const std::optional<Index> before = holds_back(index);
      return before ? Link(*before) : busy;  // about to begin
    }
    if (instruction(index).kind == InstructionKind::collective) return absent(index, busy);
    const std::optional<std::uint32_t> waiting = waits_for(index);
    return waiting ? other_end(index, *waiting) : busy;
  }

  [[nodiscard]] Link other_end(Index index, std::uint32_t waiting) const {
    using Kind = ChainEnd::Kind;
    const std::uint32_t rank = prerequisites_.rank(index);
    const Transfer& transfer = program_.ranks[rank].transfers[waiting];
    const Matching::End other = matching_.partner(rank, waiting);
    const Rank there = transfer.peer;
    if (!other.exists()) return ChainEnd{Kind::nobody, index, there};
    if (!gone(other.rank).empty()) return ChainEnd{Kind::gone, index, there};
    if (!progress_.begun(owner(other))) return owner(other);
    // Both ends are there: what was sent was lost.
    return ChainEnd{Kind::lost, index, transfer.is_send ? static_cast<Rank>(rank) : there};
  }

  // Who does not come to a collective, and why.
  [[nodiscard]] Link absent(Index index, const ChainEnd& busy) const {
    const CollectiveGroup group = group_of(index);
    if (!group.possible) {
      const auto stays_away = std::ranges::find_if(group.communicator, [&](Rank rank) {
        return std::ranges::none_of(group.members, [&](const CollectiveGroup::Member& member) {
          return static_cast<Rank>(member.rank) == rank;
        });
      });
      const bool all_come = stays_away == group.communicator.end();
      return ChainEnd{ChainEnd::Kind::nobody, index, all_come ? busy.culprit : *stays_away};
    }
    for (const CollectiveGroup::Member& member : group.members) {
      const Index there = prerequisites_.index(member.rank, member.instruction);
      if (progress_.begun(there)) continue;
      if (gone(member.rank).empty()) return there;
      return ChainEnd{ChainEnd::Kind::gone, index, static_cast<Rank>(member.rank)};
    }
    return undelivered(index, group, busy);
  }

  // All have come to a collective: whose part of it does not arrive, and why.
  [[nodiscard]] Link undelivered(Index index, const CollectiveGroup& group,
                                 const ChainEnd& busy) const {
    using Kind = ChainEnd::Kind;
    const std::optional<Lack> lack = lacks(index);
    if (!lack) return busy;
    const auto from = static_cast<Rank>(lack->rank);
    if (!gone(lack->rank).empty()) return ChainEnd{Kind::gone, index, from};
    const auto member =
        std::ranges::find(group.members, lack->rank, &CollectiveGroup::Member::rank);
    const Index there = prerequisites_.index(lack->rank, member->instruction);
    if (lack->is_sum && !progress_.ended(there)) {
      // It adds up when it has all shares.
      const std::optional<Lack> theirs = lacks(there);
      if (!theirs) return busy;
      if (!theirs->is_sum) return there;
    }
    return ChainEnd{Kind::lost, index, from};
  }

  // Those that a collective brings together: each is of one group.
  [[nodiscard]] CollectiveGroup group_of(Index index) const {
    std::vector<CollectiveGroup> groups = collective_groups(program_);
    const auto group = std::ranges::find_if(groups, [&](const CollectiveGroup& each) {
      return std::ranges::any_of(each.members, [&](const CollectiveGroup::Member& member) {
        return prerequisites_.index(member.rank, member.instruction) == index;
      });
    });
    return std::move(*group);
  }

  // Of an instruction that has begun, the transfer that it waits for: the first whose other end has
  // not begun, else the first whose other end is not known to have met it.
  [[nodiscard]] std::optional<std::uint32_t> waits_for(Index index) const {
    const Instruction& what = instruction(index);
    if (what.kind != InstructionKind::transfer) return std::nullopt;
    const std::uint32_t rank = prerequisites_.rank(index);
    std::optional<std::uint32_t> met;
    for (std::uint32_t k = what.body.first; k < what.body.first + what.body.count; ++k) {
      const Matching::End other = matching_.partner(rank, k);
      if (!other.exists() || !gone(other.rank).empty() || !progress_.begun(owner(other))) return k;
      const bool lost = !program_.ranks[rank].transfers[k].is_send && progress_.ended(owner(other));
      if (!met || lost) met = k;
    }
    return met;
  }

  // An instruction of the same rank that has not come far enough for this one to begin.
  [[nodiscard]] std::optional<Index> holds_back(Index index) const {
    const std::uint32_t rank = prerequisites_.rank(index);
    const auto size = static_cast<std::uint32_t>(program_.ranks[rank].instructions.size());
    const auto names = [&](std::span<const Index> list) {
      return std::ranges::find(list, index) != list.end();
    };
    for (std::uint32_t i = 0; i < size; ++i) {
      const Index before = prerequisites_.index(rank, i);
      // A stream issues in order, whatever may overtake what it has issued.
      const bool ahead = before < index && instruction(before).stream == instruction(index).stream;
      if (ahead && !progress_.begun(before)) return before;
      if (!progress_.ended(before) && names(prerequisites_.after_end(before))) return before;
      if (!progress_.begun(before) && names(prerequisites_.after_begin(before))) return before;
    }
    return std::nullopt;
  }

  // Who does not come to a collective.
  [[nodiscard]] std::string absent_from(Index index) const {
    const std::uint32_t rank = prerequisites_.rank(index);
    const std::string what = called(program_.ranks[rank], instruction(index));
    const CollectiveGroup group = group_of(index);
    if (!group.possible) {
      return fmt::format("{} never begins: not every member calls it, or not for the same", what);
    }
    for (const CollectiveGroup::Member& member : group.members) {
      if (progress_.begun(prerequisites_.index(member.rank, member.instruction))) continue;
      const std::string why = gone(member.rank);
      return fmt::format("{} waits for rank {}, which {}", what, member.rank,
                         why.empty() ? "has not begun it: " + doing(member.rank) : why);
    }
    const std::optional<Lack> lack = lacks(index);
    if (!lack) return fmt::format("{} has begun and does not end", what);
    const std::string why = gone(lack->rank);
    return fmt::format("{} waits for rank {}, which {}: its {} does not arrive", what, lack->rank,
                       why.empty() ? "has begun it" : why,
                       lack->is_sum ? "part of the sum" : "share");
  }

  // The first thing of a rank that is under way, or that has not begun.
  [[nodiscard]] std::string doing(std::uint32_t rank) const {
    const auto size = static_cast<std::uint32_t>(program_.ranks[rank].instructions.size());
    for (std::uint32_t i = 0; i < size; ++i) {
      const Index index = prerequisites_.index(rank, i);
      if (progress_.ended(index)) continue;
      return fmt::format("rank {} is at {}", rank,
                         called(program_.ranks[rank], program_.ranks[rank].instructions[i]));
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

ChainEnd chain_end(const Program& program, const Matching& matching,
                   const Prerequisites& prerequisites, const Progress& progress, Index from) {
  return Explainer(program, matching, prerequisites, progress).chain(from);
}

Failure failure_at(const Program& program, const Matching& matching,
                   const Prerequisites& prerequisites, const Progress& progress,
                   const ChainEnd& end, int step) {
  return {static_cast<Rank>(prerequisites.rank(end.last)), prerequisites.instruction(end.last),
          step, Explainer(program, matching, prerequisites, progress).reason(end.last),
          end.culprit};
}

Failure why_stuck(const Program& program, const Matching& matching,
                  const Prerequisites& prerequisites, const Progress& progress, int step) {
  const Explainer explainer(program, matching, prerequisites, progress);
  const Index index = explainer.first_blocked();
  ChainEnd end = explainer.chain(index);
  end.last = index;
  return failure_at(program, matching, prerequisites, progress, end, step);
}

std::string describe(const Payload& payload) {
  const std::string copy = payload.replica == 0   ? ""
                           : payload.replica == 1 ? " (second copy)"
                                                  : fmt::format(" (copy {})", payload.replica);
  return fmt::format("the {} of microbatch {}{} from stage {} to stage {}", name(payload.kind),
                     payload.microbatch, copy, payload.from, payload.to);
}

}  // namespace counterflow::exec
