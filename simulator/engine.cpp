#include "simulator/engine.h"

#include <algorithm>
#include <stdexcept>

#include "scheduler/graph/blocking.h"
#include "scheduler/graph/recordings.h"

namespace counterflow::sim {

Engine::Engine(const Program& program, const Links& links, const ExecutionModel& execution)
    : program_(program),
      links_(links),
      execution_(execution),
      matching_(program),
      timelines_(program.ranks.size()),
      transfers_(program.ranks.size()),
      in_time_order_(links.has_bandwidth()) {
  number_instructions();
  link_events();
  link_queues();
}

void Engine::number_instructions() {
  states_.reserve(program_.size());
  for (std::size_t rank = 0; rank < program_.ranks.size(); ++rank) {
    const RankProgram& list = program_.ranks[rank];
    bases_.push_back(static_cast<Index>(states_.size()));
    states_.resize(states_.size() + list.instructions.size(),
                   {.rank = static_cast<std::uint32_t>(rank)});
    timelines_[rank].instructions.resize(list.instructions.size(), {Time{-1}, Time{-1}});
    transfers_[rank].resize(list.transfers.size());
  }
  ends_left_.resize(states_.size());
}

void Engine::link_events() {
  std::size_t waits = 0;
  for (const RankProgram& rank : program_.ranks) waits += rank.waits.size();
  first_waiter_.assign(states_.size(), kNone);
  waiters_.reserve(waits);
  for (std::size_t rank = 0; rank < program_.ranks.size(); ++rank) {
    const RankProgram& list = program_.ranks[rank];
    const Recordings recordings(list);
    for (std::size_t i = 0; i < list.instructions.size(); ++i) {
      const auto index = static_cast<Index>(bases_[rank] + i);
      for (const EventWait& wait : list.waits_of(list.instructions[i])) {
        ++states_[index].pending;
        const std::uint32_t recorder = recordings.recorder(wait);
        if (recorder == kNone) continue;  // it waits for ever
        std::uint32_t& first = first_waiter_[bases_[rank] + recorder];
        waiters_.push_back({index, first});
        first = static_cast<std::uint32_t>(waiters_.size() - 1);
      }
    }
  }
}

void Engine::link_after(std::vector<Index>& next, Index earlier, Index later) {
  if (next.empty()) next.assign(states_.size(), kNone);
  next[earlier] = later;
  ++states_[later].pending;
}

void Engine::link_queues() {
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
      const bool moves_data = instruction.kind == InstructionKind::transfer;
      if (!(moves_data && execution_.independent_transfers)) {
        follow(next_on_stream_, last_on_stream[instruction.stream], index);
      }
      if (moves_data && execution_.serial_communicators) {
        follow(next_on_communicator_, last_on_communicator[instruction.communicator], index);
      }
      if (moves_data && execution_.launch_order != LaunchOrder::independent) {
        follow(next_launch_, last_launch, index);
      }
      if (!last_in_queue.empty()) {
        follow(next_in_queue_, last_in_queue[instruction.stream % last_in_queue.size()], index);
      }
    }
  }
}

bool Engine::releases_stream_at_start(const RankProgram& rank,
                                      const Instruction& instruction) const {
  // Independent transfers queue on no stream, so there is nothing to release.
  return instruction.kind == InstructionKind::transfer && !execution_.independent_transfers &&
         releases_stream_at_begin(execution_.semantics, rank.transfers_of(instruction));
}

void Engine::run() {
  for (Index index = static_cast<Index>(states_.size()); index-- > 0;) {
    if (states_[index].pending == 0) {
      states_[index].pending = 1;
      satisfy(index, 0);
    }
  }
  while (!work_.empty() || !by_time_.empty()) {
    Index index = 0;
    if (in_time_order_) {
      index = by_time_.top().index;
      by_time_.pop();
    } else {
      index = work_.back().index;
      work_.pop_back();
    }
    start(index);
  }
}

void Engine::satisfy(Index index, std::int64_t at) {
  State& state = states_[index];
  state.ready = std::max(state.ready, at);
  if (--state.pending > 0) return;
  if (in_time_order_) {
    by_time_.push({state.ready, index});
  } else {
    work_.push_back({state.ready, index});
  }
}

void Engine::satisfy_next(const std::vector<Index>& next, Index index, std::int64_t at) {
  if (!next.empty() && next[index] != kNone) satisfy(next[index], at);
}

void Engine::start(Index index) {
  const std::int64_t at = states_[index].ready;
  Interval& shown = interval(index);
  shown.begin = std::max(shown.begin, Time(at));
  satisfy_next(next_in_queue_, index, at);
  if (execution_.launch_order == LaunchOrder::chained) satisfy_next(next_launch_, index, at);
  const Instruction& what = instruction(index);
  switch (what.kind) {
    case InstructionKind::run:
      finish(index, at + program_.kernels[what.kernel].duration.count());
      break;
    case InstructionKind::transfer:
      if (releases_stream_at_start(program_.ranks[states_[index].rank], what)) {
        satisfy_next(next_on_stream_, index, at);
      }
      start_transfers(index, at);
      break;
    case InstructionKind::step_end:
      finish(index, at);
      break;
    case InstructionKind::collective:
      throw std::logic_error("the simulator has no rule for collectives");
  }
}

void Engine::start_transfers(Index index, std::int64_t at) {
  const std::uint32_t rank = states_[index].rank;
  const Range body = instruction(index).body;
  ends_left_[index] = body.count;
  for (std::uint32_t k = 0; k < body.count; ++k) {
    transfers_[rank][body.first + k].posted = at;
    meet(rank, body.first + k, at);
  }
}

void Engine::meet(std::size_t rank, std::uint32_t transfer, std::int64_t at) {
  const Matching::End partner = matching_.partner(rank, transfer);
  const bool send = program_.ranks[rank].transfers[transfer].is_send;
  if (!partner.exists()) {
    // A buffered send does not know that nobody receives; anything else waits for ever.
    if (send && execution_.semantics == Semantics::buffered) end_transfer(rank, transfer, at);
    return;
  }
  TransferState& other = transfers_[partner.rank][partner.transfer];
  if (execution_.semantics == Semantics::buffered) {
    TransferState& mine = transfers_[rank][transfer];
    if (send) {
      move(rank, transfer, partner, at);
    } else if (mine.arrival >= 0) {
      end_transfer(rank, transfer, std::max(at, mine.arrival));
    }
  } else if (other.posted >= 0) {
    if (send) {
      move(rank, transfer, partner, std::max(at, other.posted));
    } else {
      move(partner.rank, partner.transfer, {static_cast<std::uint32_t>(rank), transfer},
           std::max(at, other.posted));
    }
  }
}

void Engine::move(std::size_t rank, std::uint32_t send, Matching::End receive, std::int64_t at) {
  std::int64_t sent = at;
  if (links_.has_bandwidth() && rank != receive.rank) {
    std::int64_t& free = link_free_[static_cast<std::uint64_t>(rank) << 32U | receive.rank];
    sent = std::max(free, at) + links_.occupancy(program_.ranks[rank].transfers[send].size).count();
    free = sent;
  }
  const std::int64_t arrival =
      sent + links_.latency(static_cast<Rank>(rank), static_cast<Rank>(receive.rank)).count();
  TransferState& to = transfers_[receive.rank][receive.transfer];
  if (execution_.independent_transfers) {
    // A receive that queues behind nothing is shown from when its message sets out.
    Interval& shown =
        interval(bases_[receive.rank] + matching_.instruction(receive.rank, receive.transfer));
    shown.begin = std::max(shown.begin, Time(at));
  }
  if (to.posted >= 0) {
    end_transfer(receive.rank, receive.transfer, std::max(arrival, to.posted));
  } else {
    to.arrival = arrival;
  }
  end_transfer(rank, send, sent);
}

void Engine::end_transfer(std::size_t rank, std::uint32_t transfer, std::int64_t at) {
  const Index index = bases_[rank] + matching_.instruction(rank, transfer);
  Interval& shown = interval(index);
  shown.end = std::max(shown.end, Time(at));
  if (--ends_left_[index] == 0) finish(index, shown.end.count());
}

void Engine::finish(Index index, std::int64_t at) {
  interval(index).end = Time(at);
  const Instruction& what = instruction(index);
  const std::uint32_t rank = states_[index].rank;
  if (!releases_stream_at_start(program_.ranks[rank], what)) {
    satisfy_next(next_on_stream_, index, at);
  }
  satisfy_next(next_on_communicator_, index, at);
  if (execution_.launch_order == LaunchOrder::serial) satisfy_next(next_launch_, index, at);
  for (std::uint32_t entry = first_waiter_[index]; entry != kNone; entry = waiters_[entry].next) {
    satisfy(waiters_[entry].index, at);
  }
}

}  // namespace counterflow::sim
