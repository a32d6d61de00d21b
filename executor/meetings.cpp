#include "executor/meetings.h"

#include <cstddef>
#include <utility>

#include "executor/collectives.h"

namespace counterflow::exec {

Meetings::Meetings(const Program& program, std::vector<RankMemory>& memories)
    : program_(program),
      memories_(memories),
      groups_(collective_groups(program)),
      arrived_(std::make_unique<std::atomic<std::size_t>[]>(groups_.size())) {
  for (const RankProgram& rank : program.ranks) group_of_.emplace_back(rank.collectives.size());
  for (std::uint32_t g = 0; g < groups_.size(); ++g) {
    for (const Member& member : groups_[g].members) {
      const RankProgram& rank = program.ranks[member.rank];
      group_of_[member.rank][rank.instructions[member.instruction].body.first] = g;
    }
  }
}

void Meetings::clear() {
  for (std::size_t g = 0; g < groups_.size(); ++g) arrived_[g].store(0, std::memory_order_relaxed);
}

Meetings::Outcome Meetings::arrive(std::uint32_t rank, std::uint32_t instruction) {
  const std::uint32_t g =
      group_of_[rank][program_.ranks[rank].instructions[instruction].body.first];
  const CollectiveGroup& group = groups_[g];
  const std::size_t before = arrived_[g].fetch_add(1, std::memory_order_acq_rel);
  if (!group.possible || before + 1 < group.members.size()) return {.ended = {}, .at = {}};
  std::vector<Buffer> buffers;
  for (const Member& member : group.members) {
    if (std::string fault = use(member); !fault.empty()) {
      return {.ended = {}, .fault = std::move(fault), .at = member};
    }
    buffers.push_back(data(member));
  }
  perform(group.body.front().kind, buffers);
  return {.ended = group.members, .at = {}};
}

const Collective& Meetings::collective(const Member& member) const {
  const RankProgram& rank = program_.ranks[member.rank];
  return rank.collectives[rank.instructions[member.instruction].body.first];
}

std::string Meetings::use(const Member& member) {
  const Collective& what = collective(member);
  if (what.slot == kNone) return {};
  const Access access{.slot = what.slot, .version = what.version & 0x7fffffffU, .is_write = 1};
  RankMemory& memory = memories_[member.rank];
  return memory.use(access) ? std::string() : memory.complaint(access);
}

Buffer Meetings::data(const Member& member) {
  const Collective& what = collective(member);
  if (what.slot == kNone) return {};
  return memories_[member.rank].buffer(what.slot).first(static_cast<std::size_t>(what.size.value));
}

}  // namespace counterflow::exec
