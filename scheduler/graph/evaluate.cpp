#include "scheduler/graph/evaluate.h"

#include <algorithm>
#include <limits>

namespace counterflow {
namespace {

constexpr std::int64_t kNever = -1;
// A rank that waits for an op of its own that never comes: no message wakes it.
constexpr std::uint64_t kForever = std::numeric_limits<std::uint64_t>::max();

}  // namespace

Evaluator::Evaluator(const Problem& problem, Time least_duration)
    : problem_(problem),
      least_(least_duration.count()),
      stages_(static_cast<std::size_t>(problem.stages())),
      microbatches_(static_cast<std::size_t>(problem.microbatches)),
      uniform_(problem.costs.uniform()),
      limited_links_(problem.links.has_bandwidth()) {
  const Channels channels(problem);
  for (Channels::Id id = 0; id < channels.size(); ++id) {
    const Channels::Channel& c = channels[id];
    wires_.push_back(
        {.latency = (problem.links.latency(c.source, c.destination) +
                     problem.links.passage(c.source, c.destination, c.wire))
                        .count(),
         .occupancy = problem.links.occupancy(c.wire).count(),
         .link = static_cast<std::size_t>(c.source) * static_cast<std::size_t>(problem.ranks()) +
                 static_cast<std::size_t>(c.destination),
         .consumer = c.destination,
         .crosses = c.crosses_ranks()});
  }
  const int replicas = problem.placement.replicas();
  for (int replica = 0; replica < replicas; ++replica) {
    for (Stage stage = 0; stage < problem.stages(); ++stage) {
      for (const OpKind kind :
           {OpKind::forward, OpKind::backward, OpKind::backward_input, OpKind::backward_weight,
            OpKind::recompute, OpKind::offload, OpKind::reload}) {
        const Op op{kind, static_cast<std::uint8_t>(replica), static_cast<std::uint16_t>(stage), 0};
        chunk_ops_.push_back(chunk_op_for(channels, op));
      }
    }
  }
  const auto ranks = static_cast<std::size_t>(problem.ranks());
  arrivals_.resize(channels.size() * microbatches_);
  done_.resize(chunk_ops_.size() / kKinds * microbatches_);
  link_free_.resize(limited_links_ ? ranks * ranks : 0);
  states_.resize(ranks);
}

Evaluator::ChunkOp Evaluator::chunk_op_for(const Channels& channels, const Op& op) {
  ChunkOp result;
  const StageCost& cost = problem_.costs.stages()[op.stage];
  const bool restores = problem_.keeping_of(op.stage).kind != KeepingKind::all;
  const auto before_gradient =
      static_cast<std::uint8_t>(restores ? kForwardDone | kRestored : kForwardDone);
  switch (op.kind) {
    case OpKind::forward:
      result.makes = kForwardDone;
      result.duration = cost.forward.count();
      break;
    case OpKind::backward:
      result.duration = (cost.backward_input + cost.backward_weight).count();
      result.needs = before_gradient;
      result.makes = kGradientDone;
      break;
    case OpKind::backward_input:
      result.duration = cost.backward_input.count();
      result.needs = before_gradient;
      result.makes = kGradientDone;
      break;
    case OpKind::offload:
      result.duration = cost.store.count();
      result.needs = kForwardDone;
      result.makes = kStored;
      break;
    case OpKind::recompute:
    case OpKind::reload:
      result.duration = cost.restore.count();
      result.needs = op.kind == OpKind::reload ? kStored : kForwardDone;
      result.makes = kRestored;
      break;
    default:
      result.duration = cost.backward_weight.count();
      result.needs = kGradientDone;
  }
  const auto append = [this](const std::vector<Channels::Id>& ids) {
    const auto first = static_cast<std::uint32_t>(channel_ids_.size());
    channel_ids_.insert(channel_ids_.end(), ids.begin(), ids.end());
    return first;
  };
  result.in = append(channels.inputs(op));
  result.out = append(channels.outputs(op));
  result.out_end = static_cast<std::uint32_t>(channel_ids_.size());
  return result;
}

void Evaluator::reset(const Schedule& schedule) {
  std::fill(arrivals_.begin(), arrivals_.end(), kNever);
  std::fill(done_.begin(), done_.end(), std::uint8_t{0});
  std::fill(link_free_.begin(), link_free_.end(), 0);
  std::fill(states_.begin(), states_.end(), RankState{});
  runnable_.clear();
  for (std::size_t rank = schedule.ranks.size(); rank-- > 0;) {
    runnable_.push_back(static_cast<std::uint32_t>(rank));
  }
  first_begin_ = std::numeric_limits<std::int64_t>::max();
  last_end_ = 0;
}

std::int64_t Evaluator::inputs_ready(const Op& op, RankState& state) const {
  const ChunkOp& work = chunk_op(op);
  const std::uint8_t done =
      done_[chunk(op) * microbatches_ + static_cast<std::size_t>(op.microbatch)];
  if ((done & work.needs) != work.needs) {
    state.blocked_on = kForever;
    return kNever;
  }
  std::int64_t ready = 0;
  for (std::uint32_t i = work.in; i < work.out; ++i) {
    const std::uint64_t index = arrival(channel_ids_[i], op.microbatch);
    const std::int64_t at = arrivals_[index];
    if (at < 0) {
      state.blocked_on = index + 1;
      return kNever;
    }
    ready = std::max(ready, at);
  }
  return ready;
}

std::int64_t Evaluator::duration(const Slot& slot) const {
  if (uniform_ && !slot.is_pair()) return std::max(least_, chunk_op(slot.first).duration);
  return std::max(least_, problem_.duration(slot).count());
}

void Evaluator::send(std::uint32_t id, Microbatch microbatch, std::int64_t at) {
  const Wire& wire = wires_[id];
  if (limited_links_ && wire.crosses) {
    std::int64_t& free = link_free_[wire.link];
    free = std::max(free, at) + wire.occupancy;
    at = free;
  }
  const std::uint64_t index = arrival(id, microbatch);
  arrivals_[index] = at + wire.latency;
  RankState& consumer = states_[static_cast<std::size_t>(wire.consumer)];
  if (consumer.blocked_on == index + 1) {
    consumer.blocked_on = 0;
    runnable_.push_back(static_cast<std::uint32_t>(wire.consumer));
  }
}

void Evaluator::finish(const Op& op, std::int64_t end) {
  const ChunkOp& work = chunk_op(op);
  done_[chunk(op) * microbatches_ + static_cast<std::size_t>(op.microbatch)] |= work.makes;
  for (std::uint32_t i = work.out; i < work.out_end; ++i) {
    send(channel_ids_[i], op.microbatch, end);
  }
}

template <bool kRecord>
void Evaluator::advance(const Schedule& schedule, std::uint32_t rank, Evaluation* record) {
  const std::vector<Slot>& order = schedule.ranks[rank];
  RankState& state = states_[rank];
  while (state.position < order.size()) {
    const Slot& slot = order[state.position];
    std::int64_t begin = inputs_ready(slot.first, state);
    if (begin < 0) return;
    if (slot.is_pair()) {
      const std::int64_t second = inputs_ready(slot.second, state);
      if (second < 0) return;
      begin = std::max(begin, second);
    }
    begin = std::max(begin, state.clock);
    first_begin_ = std::min(first_begin_, begin);
    const std::int64_t end = begin + duration(slot);
    state.clock = end;
    if constexpr (kRecord) record->begins[rank][state.position] = Time(begin);
    ++state.position;
    finish(slot.first, end);
    if (slot.is_pair()) finish(slot.second, end);
  }
}

template <bool kRecord>
void Evaluator::run(const Schedule& schedule, Evaluation* record) {
  reset(schedule);
  while (!runnable_.empty()) {
    const std::uint32_t rank = runnable_.back();
    runnable_.pop_back();
    advance<kRecord>(schedule, rank, record);
  }
  for (const RankState& state : states_) last_end_ = std::max(last_end_, state.clock);
}

Time Evaluator::outcome(const Schedule& schedule) const {
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    if (states_[rank].position != schedule.ranks[rank].size()) return Time(kNever);
  }
  return schedule.size() == 0 ? Time{0} : Time(last_end_ - first_begin_);
}

Time Evaluator::makespan(const Schedule& schedule) {
  run<false>(schedule, nullptr);
  return outcome(schedule);
}

Evaluation Evaluator::evaluate(const Schedule& schedule) {
  Evaluation result;
  result.begins.resize(schedule.ranks.size());
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    result.begins[rank].assign(schedule.ranks[rank].size(), Time(kNever));
  }
  run<true>(schedule, &result);
  result.makespan = outcome(schedule);
  result.complete = result.makespan.count() != kNever;
  return result;
}

}  // namespace counterflow
