#include "scheduler/graph/collective_groups.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace counterflow {
namespace {

std::span<const Collective> body_of(const Program& program, const CollectiveGroup::Member& member) {
  const RankProgram& rank = program.ranks[member.rank];
  return entries(rank.collectives, rank.instructions[member.instruction].body);
}

// Everyone comes once, for the same.
bool is_possible(const Program& program, const CollectiveGroup& group) {
  if (group.members.size() != group.communicator.size()) return false;
  return std::ranges::all_of(group.members, [&](const CollectiveGroup::Member& member) {
    return std::ranges::find(group.communicator, static_cast<Rank>(member.rank)) !=
               group.communicator.end() &&
           same_work(body_of(program, member), group.body);
  });
}

}  // namespace

bool same_work(std::span<const Collective> a, std::span<const Collective> b) {
  return std::ranges::equal(a, b, [](const Collective& x, const Collective& y) {
    return x.kind == y.kind && x.size == y.size;
  });
}

std::vector<CollectiveGroup> collective_groups(const Program& program) {
  std::vector<std::vector<CollectiveGroup>> by_communicator(program.communicators.size());
  for (std::uint32_t rank = 0; rank < program.ranks.size(); ++rank) {
    std::vector<std::size_t> count(program.communicators.size());
    const auto& instructions = program.ranks[rank].instructions;
    for (std::uint32_t i = 0; i < instructions.size(); ++i) {
      if (instructions[i].kind != InstructionKind::collective) continue;
      const CommunicatorId id = instructions[i].communicator;
      std::vector<CollectiveGroup>& groups = by_communicator.at(id);
      const std::size_t k = count[id]++;
      if (k == groups.size()) groups.push_back({program.communicators[id].members, {}, {}});
      groups[k].members.push_back({rank, i});
    }
  }
  std::vector<CollectiveGroup> all;
  for (std::vector<CollectiveGroup>& groups : by_communicator) {
    for (CollectiveGroup& group : groups) {
      group.body = body_of(program, group.members.front());
      group.possible = is_possible(program, group);
      all.push_back(std::move(group));
    }
  }
  return all;
}

}  // namespace counterflow
