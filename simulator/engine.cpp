#include "simulator/engine.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace counterflow::sim {
namespace {

std::uint64_t pair_key(std::uint32_t from, std::uint32_t to) {
  return std::uint64_t{from} << 32U | to;
}

std::vector<double> capacities(const Topology& topology, const Disturbances* disturbances) {
  std::vector<double> bytes_per_ns;
  for (const SharedLink& link : topology.links()) bytes_per_ns.push_back(link.bandwidth * 1e-9);
  if (disturbances != nullptr) {
    bytes_per_ns.resize(bytes_per_ns.size() + disturbances->pair_links(), MaxMinSolver::kUnlimited);
  }
  return bytes_per_ns;
}

}  // namespace

Engine::Engine(const Wiring& wiring, const Disturbances* disturbances)
    : wiring_(wiring),
      disturbances_(disturbances),
      ends_left_(wiring.size()),
      in_time_order_(!wiring.links().only_latency()) {
  if (const Topology* topology = wiring.links().topology()) {
    network_.emplace(capacities(*topology, disturbances));
  }
}

void Engine::reset(const Loads& loads) {
  loads_ = loads;
  times_.assign(wiring_.size(), {Time{-1}, Time{-1}});
  states_.resize(wiring_.size());
  for (std::size_t i = 0; i < states_.size(); ++i) {
    states_[i] = {0, wiring_.starts()[i].pending, wiring_.starts()[i].rank};
  }
  transfers_.assign(wiring_.messages(), {});
  arrivals_.assign(wiring_.meetings().size(), {});
  finished_ = 0;
  link_free_.clear();
  if (network_) network_->reset();
  flowing_.clear();
  unused_tags_.clear();
  next_change_ = 0;
}

void Engine::run(const Loads& loads) {
  reset(loads);
  for (Index index = static_cast<Index>(states_.size()); index-- > 0;) {
    if (states_[index].pending == 0) {
      states_[index].pending = 1;
      satisfy(index, 0);
    }
  }
  if (network_) {
    run_over_network();
    return;
  }
  while (!work_.empty() || !by_time_.empty()) start_next();
}

void Engine::run_over_network() {
  const std::span<const Disturbances::Change> changes =
      disturbances_ == nullptr ? std::span<const Disturbances::Change>() : disturbances_->changes();
  for (;;) {
    const std::int64_t start_at = by_time_.empty() ? kNever : by_time_.top().at;
    // All that starts at one instant joins the network before rates are found.
    if (start_at <= network_->now()) {
      start_next();
      continue;
    }
    const std::int64_t change_at =
        next_change_ < changes.size() ? changes[next_change_].at : kNever;
    const std::int64_t end_at = network_->next_end();
    const std::int64_t at = std::min({start_at, change_at, end_at});
    if (at == kNever) return;
    if (end_at == at) {
      for (const std::uint32_t tag : network_->finish_next()) {
        flowing_[tag].flows = false;
        unused_tags_.push_back(tag);
        arrive(flowing_[tag], at);
      }
    } else if (change_at == at) {
      apply(changes[next_change_++]);
    } else {
      start_next();
    }
  }
}

void Engine::start_next() {
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

void Engine::apply(const Disturbances::Change& change) {
  if (!change.is_failure) {
    network_->set_capacity(change.at, change.what, change.capacity);
    return;
  }
  for (std::uint32_t tag = 0; tag < flowing_.size(); ++tag) {
    Message& message = flowing_[tag];
    if (!message.flows || (message.rank != change.what && message.receive.rank != change.what)) {
      continue;
    }
    message.flows = false;
    network_->cancel(change.at, message.flow);
    unused_tags_.push_back(tag);
    lose(Message(message), change.at);
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
  const std::uint32_t rank = states_[index].rank;
  if (at >= fails_at(rank)) return;
  Interval& shown = times_[index];
  shown.begin = std::max(shown.begin, Time(at));
  satisfy_next(wiring_.next_in_queue, index, at);
  if (wiring_.execution().launch_order == LaunchOrder::chained) {
    satisfy_next(wiring_.next_launch, index, at);
  }
  switch (wiring_.instruction(index).kind) {
    case InstructionKind::run: {
      const std::int64_t work = loads_.durations[index];
      finish(index, disturbances_ == nullptr ? at + work : disturbances_->rank(rank).end(at, work));
      break;
    }
    case InstructionKind::transfer:
      if (wiring_.releases_stream_at_start(index)) {
        satisfy_next(wiring_.next_on_stream, index, at);
      }
      start_transfers(index, at);
      break;
    case InstructionKind::step_end:
      finish(index, at);
      break;
    case InstructionKind::collective:
      join_collective(index, at);
      break;
  }
}

void Engine::join_collective(Index index, std::int64_t at) {
  const std::uint32_t id = wiring_.meeting_of(index);
  const Wiring::Meeting& meeting = wiring_.meetings()[id];
  Arrivals& arrivals = arrivals_[id];
  arrivals.latest = std::max(arrivals.latest, at);
  if (++arrivals.count < meeting.members || !meeting.possible) return;
  std::int64_t work = 0;
  for (const Index member : wiring_.members(meeting)) {
    work = std::max(work, loads_.durations[member]);
  }
  const std::int64_t end = arrivals.latest + work;
  bool lost = false;
  for (const Index member : wiring_.members(meeting)) {
    times_[member].begin = Time(arrivals.latest);
    lost = lost || end > fails_at(states_[member].rank);
  }
  if (lost) return;
  for (const Index member : wiring_.members(meeting)) finish(member, end);
}

void Engine::start_transfers(Index index, std::int64_t at) {
  const std::uint32_t rank = states_[index].rank;
  const Range body = wiring_.instruction(index).body;
  ends_left_[index] = body.count;
  for (std::uint32_t k = 0; k < body.count; ++k) {
    transfers_[wiring_.message(rank, body.first + k)].posted = at;
    meet(rank, body.first + k, at);
  }
}

void Engine::meet(std::uint32_t rank, std::uint32_t transfer, std::int64_t at) {
  const Matching::End partner = wiring_.matching().partner(rank, transfer);
  const bool send = wiring_.program().ranks[rank].transfers[transfer].is_send;
  const bool buffered = wiring_.execution().semantics == Semantics::buffered;
  if (!partner.exists()) {
    // A buffered send does not know that nobody receives; anything else waits for ever.
    if (send && buffered) end_transfer(rank, transfer, at);
    return;
  }
  if (buffered) {
    const TransferState& mine = transfers_[wiring_.message(rank, transfer)];
    if (send) {
      move({rank, transfer, partner}, at);
    } else if (mine.arrival >= 0) {
      end_transfer(rank, transfer, std::max(at, mine.arrival));
    }
    return;
  }
  const TransferState& other = transfers_[wiring_.message(partner.rank, partner.transfer)];
  if (other.posted < 0) return;
  const std::int64_t both = std::max(at, other.posted);
  if (send) {
    move({rank, transfer, partner}, both);
  } else {
    move({partner.rank, partner.transfer, {rank, transfer}}, both);
  }
}

std::int64_t Engine::stretched(const Message& message, std::int64_t time) const {
  if (loads_.stretch.empty()) return time;
  const double factor = loads_.stretch[wiring_.message(message.rank, message.send)];
  return std::llround(static_cast<double>(time) * factor);
}

std::int64_t Engine::pass(const Message& message, std::int64_t at, std::int64_t work) const {
  const Pace* pace =
      disturbances_ == nullptr ? nullptr : disturbances_->link(message.rank, message.receive.rank);
  return pace == nullptr ? at + work : pace->end(at, work);
}

void Engine::move(const Message& message, std::int64_t at) {
  const std::uint32_t to = message.receive.rank;
  if (wiring_.execution().independent_transfers) {
    // A receive that queues behind nothing is shown from when its message sets out.
    Interval& shown =
        times_[wiring_.base(to) + wiring_.matching().instruction(to, message.receive.transfer)];
    shown.begin = std::max(shown.begin, Time(at));
  }
  if (at >= fails_at(to)) {
    lose(message, at);
  } else if (!enter_network(message, at)) {
    arrive(message, sent_alone(message, at));
  }
}

std::int64_t Engine::sent_alone(const Message& message, std::int64_t at) {
  const Links& links = wiring_.links();
  if (!links.has_bandwidth() || message.rank == message.receive.rank) return at;
  const Bytes size = wiring_.program().ranks[message.rank].transfers[message.send].size;
  std::int64_t& free = link_free_[pair_key(message.rank, message.receive.rank)];
  free = pass(message, std::max(free, at), stretched(message, links.occupancy(size).count()));
  return free;
}

bool Engine::enter_network(Message message, std::int64_t at) {
  const Bytes size = wiring_.program().ranks[message.rank].transfers[message.send].size;
  if (!network_ || message.rank == message.receive.rank || size.value == 0) return false;
  const auto [place, is_new] = routes_.try_emplace(pair_key(message.rank, message.receive.rank));
  if (is_new) {
    const Topology& topology = *wiring_.links().topology();
    place->second =
        topology.route(static_cast<Rank>(message.rank), static_cast<Rank>(message.receive.rank));
    const int own = disturbances_ == nullptr
                        ? -1
                        : disturbances_->pair_link(message.rank, message.receive.rank);
    if (own >= 0) {
      place->second.push_back(static_cast<FlowNetwork::LinkId>(topology.links().size() +
                                                               static_cast<std::size_t>(own)));
    }
  }
  if (place->second.empty()) return false;
  if (unused_tags_.empty()) {
    unused_tags_.push_back(static_cast<std::uint32_t>(flowing_.size()));
    flowing_.emplace_back();
  }
  const std::uint32_t tag = unused_tags_.back();
  unused_tags_.pop_back();
  const double factor =
      loads_.stretch.empty() ? 1 : loads_.stretch[wiring_.message(message.rank, message.send)];
  message.flow = network_->begin(at, place->second, static_cast<double>(size.value) * factor, tag);
  message.flows = true;
  flowing_[tag] = message;
  return true;
}

void Engine::lose(const Message& message, std::int64_t at) {
  // A buffered send does not know; its own rank's failure stops it in end_transfer.
  if (wiring_.execution().semantics == Semantics::buffered) {
    end_transfer(message.rank, message.send, at);
  }
}

void Engine::arrive(const Message& message, std::int64_t sent) {
  const Matching::End receive = message.receive;
  if (sent == kNever || sent > fails_at(message.rank) || sent > fails_at(receive.rank)) {
    lose(message, sent);
    return;
  }
  const Time latency =
      wiring_.links().latency(static_cast<Rank>(message.rank), static_cast<Rank>(receive.rank));
  const std::int64_t arrival = pass(message, sent, stretched(message, latency.count()));
  TransferState& to = transfers_[wiring_.message(receive.rank, receive.transfer)];
  if (to.posted >= 0) {
    end_transfer(receive.rank, receive.transfer, std::max(arrival, to.posted));
  } else {
    to.arrival = arrival;
  }
  end_transfer(message.rank, message.send, sent);
}

void Engine::end_transfer(std::size_t rank, std::uint32_t transfer, std::int64_t at) {
  if (at > fails_at(rank) || at == kNever) return;
  const Index index = wiring_.base(rank) + wiring_.matching().instruction(rank, transfer);
  State& state = states_[index];
  state.ready = std::max(state.ready, at);
  if (--ends_left_[index] == 0) finish(index, state.ready);
}

void Engine::finish(Index index, std::int64_t at) {
  const std::uint32_t rank = states_[index].rank;
  if (at > fails_at(rank) || at == kNever) return;
  times_[index].end = Time(at);
  ++finished_;
  if (!wiring_.releases_stream_at_start(index)) satisfy_next(wiring_.next_on_stream, index, at);
  satisfy_next(wiring_.next_on_communicator, index, at);
  if (wiring_.execution().launch_order == LaunchOrder::serial) {
    satisfy_next(wiring_.next_launch, index, at);
  }
  wiring_.for_waiters(index, [&](Index waiter) { satisfy(waiter, at); });
}

std::vector<RankTimeline> Engine::timelines() const {
  std::vector<RankTimeline> ranks(wiring_.program().ranks.size());
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const auto first = times_.begin() + static_cast<std::ptrdiff_t>(wiring_.base(rank));
    const auto count =
        static_cast<std::ptrdiff_t>(wiring_.program().ranks[rank].instructions.size());
    ranks[rank].instructions.assign(first, first + count);
  }
  return ranks;
}

}  // namespace counterflow::sim
