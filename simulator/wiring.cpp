#include "simulator/wiring.h"

#include <algorithm>

#include "scheduler/graph/blocking.h"
#include "scheduler/graph/collective_groups.h"
#include "scheduler/graph/recordings.h"
#include "simulator/collectives.h"

namespace counterflow::sim {

Wiring::Wiring(const Program& program, const Links& links, const ExecutionModel& execution)
    : program_(program), links_(links), execution_(execution), matching_(program) {
  number_instructions();
  link_events();
  link_queues();
  link_collectives();
}

void Wiring::number_instructions() {
  starts_.reserve(program_.size());
  durations_.reserve(program_.size());
  for (std::size_t rank = 0; rank < program_.ranks.size(); ++rank) {
    const RankProgram& list = program_.ranks[rank];
    bases_.push_back(static_cast<Index>(starts_.size()));
    transfer_bases_.push_back(messages_);
    messages_ += static_cast<std::uint32_t>(list.transfers.size());
    starts_.resize(starts_.size() + list.instructions.size(),
                   {.pending = 0, .rank = static_cast<std::uint32_t>(rank)});
    for (const Instruction& each : list.instructions) {
      const bool runs = each.kind == InstructionKind::run;
      durations_.push_back(runs ? program_.kernels[each.kernel].duration.count() : 0);
    }
  }
}

void Wiring::link_events() {
  std::size_t waits = 0;
  for (const RankProgram& rank : program_.ranks) waits += rank.waits.size();
  first_waiter_.assign(starts_.size(), kNone);
  waiters_.reserve(waits);
  for (std::size_t rank = 0; rank < program_.ranks.size(); ++rank) {
    const RankProgram& list = program_.ranks[rank];
    const Recordings recordings(list);
    for (std::size_t i = 0; i < list.instructions.size(); ++i) {
      const auto index = static_cast<Index>(bases_[rank] + i);
      for (const EventWait& wait : list.waits_of(list.instructions[i])) {
        ++starts_[index].pending;
        const std::uint32_t recorder = recordings.recorder(wait);
        if (recorder == kNone) continue;  // it waits for ever
        std::uint32_t& first = first_waiter_[bases_[rank] + recorder];
        waiters_.push_back({index, first});
        first = static_cast<std::uint32_t>(waiters_.size() - 1);
      }
    }
  }
}

void Wiring::link_after(std::vector<Index>& next, Index earlier, Index later) {
  if (next.empty()) next.assign(starts_.size(), kNone);
  next[earlier] = later;
  ++starts_[later].pending;
}

void Wiring::link_queues() {
  for (std::size_t rank = 0; rank < program_.ranks.size(); ++rank) {
    const RankProgram& list = program_.ranks[rank];
    std::vector<Index> last_on_stream(list.streams.size(), kNone);
    std::vector<Index> last_on_communicator(program_.communicators.size(), kNone);
    std::vector<Index> last_in_queue(
        static_cast<std::size_t>(std::max(execution_.hardware_queues, 0)), kNone);
    Index last_launch = kNone;
    const auto follow = [this](std::vector<Index>& next, Index& last, Index index) {
      if (last != kNone) link_after(next, last, index);
      last = index;
    };
    for (std::size_t i = 0; i < list.instructions.size(); ++i) {
      const Instruction& instruction = list.instructions[i];
      const auto index = static_cast<Index>(bases_[rank] + i);
      const bool is_transfer = instruction.kind == InstructionKind::transfer;
      const bool moves_data = is_transfer || instruction.kind == InstructionKind::collective;
      if (!(is_transfer && execution_.independent_transfers)) {
        follow(next_on_stream, last_on_stream[instruction.stream], index);
      }
      if (moves_data && execution_.serial_communicators) {
        follow(next_on_communicator, last_on_communicator[instruction.communicator], index);
      }
      if (moves_data && execution_.launch_order != LaunchOrder::independent) {
        follow(next_launch, last_launch, index);
      }
      if (!last_in_queue.empty()) {
        follow(next_in_queue, last_in_queue[instruction.stream % last_in_queue.size()], index);
      }
    }
  }
}

bool Wiring::releases_stream_at_start(Index index) const {
  // Independent transfers queue on no stream, so there is nothing to release.
  const Instruction& what = instruction(index);
  return what.kind == InstructionKind::transfer && !execution_.independent_transfers &&
         releases_stream_at_begin(execution_.semantics,
                                  program_.ranks[starts_[index].rank].transfers_of(what));
}

void Wiring::link_collectives() {
  const CollectiveCosts costs(links_);
  const std::vector<CollectiveGroup> groups = collective_groups(program_);
  if (!groups.empty()) meeting_of_.assign(starts_.size(), kNone);
  const CollectiveGroup* priced = nullptr;  // most are like the one before
  std::int64_t duration = 0;
  for (const CollectiveGroup& group : groups) {
    const auto first = static_cast<std::uint32_t>(meeting_members_.size());
    if (priced == nullptr || priced->communicator != group.communicator ||
        !same_work(priced->body, group.body)) {
      duration = costs.duration(group.communicator, group.body).count();
      priced = &group;
    }
    for (const CollectiveGroup::Member& member : group.members) {
      const Index index = bases_[member.rank] + member.instruction;
      meeting_of_[index] = static_cast<std::uint32_t>(meetings_.size());
      durations_[index] = duration;
      meeting_members_.push_back(index);
    }
    meetings_.push_back({static_cast<std::uint32_t>(group.members.size()), first, group.possible});
  }
}

}  // namespace counterflow::sim
