#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "scheduler/ir/execution_model.h"
#include "scheduler/ir/program.h"
#include "scheduler/problem/problem.h"
#include "tests/support/random_problems.h"

namespace counterflow::testing {

// Runs a program one step at a time, in an order drawn at random: whether it gets to its end, and
// what it computes. Values are symbols (hashes of what they were made from), so two runs compute
// the same exactly if they end with the same ones. It shares no code with the verifier: it knows
// the meaning of instructions, and neither graph nor matching nor recordings.
class Machine {
 public:
  using Value = std::uint64_t;
  struct Outcome {
    bool completes = false;
    std::map<Op, Value> results;  // what leaves the pipeline: losses, and each gradient's sum
    friend bool operator==(const Outcome&, const Outcome&) = default;
  };

  Machine(const Problem& problem, const Program& program, Semantics semantics, std::uint64_t seed)
      : problem_(problem), program_(program), semantics_(semantics), random_(seed) {
    for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) {
      const RankProgram& list = program.ranks[rank];
      std::vector<Queue> queues(list.streams.size());
      for (std::uint32_t i = 0; i < list.instructions.size(); ++i) {
        queues[list.instructions[i].stream].push_back(i);
        issue(rank, i);
      }
      for (Queue& queue : queues) {
        if (!queue.empty()) streams_.push_back({rank, std::move(queue), 0});
      }
      began_.emplace_back(list.instructions.size(), 0);
      ended_.emplace_back(list.instructions.size(), 0);
      memory_.emplace_back();
    }
  }

  // Streams race by priorities that change now and then, so that some are far ahead of others.
  Outcome run() {
    std::vector<std::size_t> order(streams_.size());
    for (std::size_t k = 0; k < order.size(); ++k) order[k] = k;
    bool moved = true;
    for (std::size_t step = 0; moved; ++step) {
      if (step % 64 == 0) shuffle(order);
      moved = std::ranges::any_of(order, [this](std::size_t k) { return advance(streams_[k]); });
    }
    Outcome outcome;
    outcome.completes = std::ranges::all_of(
        ended_, [](const auto& all) { return std::ranges::find(all, 0) == all.end(); });
    outcome.results = std::move(results_);
    return outcome;
  }

 private:
  using Queue = std::vector<std::uint32_t>;
  struct Stream {
    std::size_t rank;
    Queue queue;
    std::size_t next;                     // of the queue: the first that has not begun
    std::vector<std::uint32_t> flying{};  // begun, not ended
  };
  // (communicator, source, destination)
  using Channel = std::tuple<CommunicatorId, std::size_t, std::size_t>;
  struct Message {
    std::optional<std::pair<std::size_t, std::uint32_t>> sender, receiver;  // rank, instruction
    std::optional<Value> content;
  };
  using Place = std::pair<std::size_t, std::uint32_t>;  // rank, index of a transfer

  void shuffle(std::vector<std::size_t>& order) {
    for (std::size_t k = order.size(); k > 1; --k) {
      std::swap(
          order[k - 1],
          order[static_cast<std::size_t>(draw(random_, 0, static_cast<std::int64_t>(k) - 1))]);
    }
  }

  // Whoever is the k-th to send on a channel meets whoever is the k-th to receive on it.
  void issue(std::size_t rank, std::uint32_t index) {
    const Instruction& instruction = program_.ranks[rank].instructions[index];
    if (instruction.kind == InstructionKind::collective) {
      const std::size_t k = calls_[{rank, instruction.communicator}]++;
      rounds_[{instruction.communicator, k}].emplace_back(rank, index);
      round_of_[{rank, index}] = {instruction.communicator, k};
    }
    if (instruction.kind != InstructionKind::transfer) return;
    for (std::uint32_t t = instruction.body.first;
         t < instruction.body.first + instruction.body.count; ++t) {
      const Transfer& end = program_.ranks[rank].transfers[t];
      const Channel channel = end.is_send ? Channel{instruction.communicator, rank, end.peer}
                                          : Channel{instruction.communicator, end.peer, rank};
      auto& messages = messages_[channel];
      const std::size_t k = issued_[{channel, end.is_send}]++;
      if (k == messages.size()) messages.emplace_back();
      (end.is_send ? messages[k].sender : messages[k].receiver) = {rank, index};
      message_of_[{rank, t}] = {channel, k};
    }
  }

  bool advance(Stream& stream) {
    for (std::size_t k = 0; k < stream.flying.size(); ++k) {
      if (!may_end(stream.rank, stream.flying[k])) continue;
      end(stream.rank, stream.flying[k]);
      stream.flying.erase(stream.flying.begin() + static_cast<std::ptrdiff_t>(k));
      return true;
    }
    if (stream.next == stream.queue.size()) return false;
    const std::uint32_t index = stream.queue[stream.next];
    if (!may_begin(stream, index)) return false;
    begin(stream.rank, index);
    stream.flying.push_back(index);
    ++stream.next;
    return true;
  }

  bool may_begin(const Stream& stream, std::uint32_t index) {
    const RankProgram& list = program_.ranks[stream.rank];
    const bool held = std::ranges::any_of(
        stream.flying, [&](std::uint32_t before) { return holds_stream(list, before); });
    if (held) return false;
    return std::ranges::all_of(list.waits_of(list.instructions[index]), [&](const EventWait& wait) {
      return recorded_.contains({stream.rank, wait.event, wait.generation});
    });
  }

  [[nodiscard]] bool holds_stream(const RankProgram& list, std::uint32_t index) const {
    const Instruction& instruction = list.instructions[index];
    if (instruction.kind != InstructionKind::transfer) return true;
    for (const Transfer& transfer : list.transfers_of(instruction)) {
      const bool lets_go =
          transfer.is_send ? semantics_ == Semantics::buffered : semantics_ == Semantics::posted;
      if (!lets_go) return true;
    }
    return false;
  }

  void begin(std::size_t rank, std::uint32_t index) {
    const RankProgram& list = program_.ranks[rank];
    const Instruction& instruction = list.instructions[index];
    began_[rank][index] = 1;
    if (instruction.kind == InstructionKind::run) {
      for (const Op& op : {instruction.op, instruction.paired}) read_inputs(rank, op);
    }
    if (instruction.kind != InstructionKind::transfer) return;
    for (std::uint32_t k = 0; k < instruction.body.count; ++k) {
      const std::uint32_t t = instruction.body.first + k;
      if (list.transfers[t].is_send) {
        message_at(rank, t).content = read(rank, maker_of(list.transfers[t].payload));
      }
    }
  }

  bool may_end(std::size_t rank, std::uint32_t index) {
    const Instruction& instruction = program_.ranks[rank].instructions[index];
    if (instruction.kind == InstructionKind::collective) {
      const auto& round = rounds_[round_of_[{rank, index}]];
      return round.size() == program_.communicators[instruction.communicator].members.size() &&
             std::ranges::all_of(round, [&](const Place& p) { return began_[p.first][p.second]; });
    }
    if (instruction.kind != InstructionKind::transfer) return true;
    for (std::uint32_t k = 0; k < instruction.body.count; ++k) {
      const std::uint32_t t = instruction.body.first + k;
      const bool is_send = program_.ranks[rank].transfers[t].is_send;
      if (is_send && semantics_ == Semantics::buffered) continue;
      const Message& message = message_at(rank, t);
      const auto& other = is_send ? message.receiver : message.sender;
      if (!other || began_[other->first][other->second] == 0) return false;
    }
    return true;
  }

  void end(std::size_t rank, std::uint32_t index) {
    const RankProgram& list = program_.ranks[rank];
    const Instruction& instruction = list.instructions[index];
    ended_[rank][index] = 1;
    if (instruction.kind == InstructionKind::run) {
      for (const Op& op : {instruction.op, instruction.paired}) write_outputs(rank, op);
    }
    for (std::uint32_t k = 0; k < list.transfers_of(instruction).size(); ++k) {
      const std::uint32_t t = instruction.body.first + k;
      if (list.transfers[t].is_send) continue;
      memory_[rank][arrived(list.transfers[t].payload)] = *message_at(rank, t).content;
    }
    if (instruction.records != kNone) {
      recorded_[{rank, instruction.records, instruction.generation}] = true;
    }
  }

  Message& message_at(std::size_t rank, std::uint32_t transfer) {
    const auto& [channel, k] = message_of_.at({rank, transfer});
    return messages_.at(channel)[k];
  }

  // ---- Values --------------------------------------------------------------------------------

  // A cell of a rank's memory: what an op made, or what came from another stage for it.
  struct Cell {
    Op op;
    int from = -1;  // the stage it came from; -1: made here
    friend auto operator<=>(const Cell&, const Cell&) = default;
  };

  static Value mix(Value a, Value b) {
    a ^= b + 0x9e3779b97f4a7c15ULL + (a << 6U) + (a >> 2U);
    a *= 0xff51afd7ed558ccdULL;
    return a ^ (a >> 33U);
  }

  static Op forward_or_gradient(const Op& op) {
    const bool forward = op.kind == OpKind::forward;
    return {forward ? OpKind::forward : OpKind::backward_input, op.replica, op.stage,
            op.microbatch};
  }
  static Op op_of(const Payload& payload, std::uint16_t stage) {
    const bool activation = payload.kind == PayloadKind::activation;
    return {activation ? OpKind::forward : OpKind::backward_input, payload.replica, stage,
            payload.microbatch};
  }
  static Cell maker_of(const Payload& payload) { return {op_of(payload, payload.from), -1}; }
  static Cell arrived(const Payload& payload) { return {op_of(payload, payload.to), payload.from}; }

  // What lies in a cell nobody wrote is never the same twice.
  Value read(std::size_t rank, const Cell& cell) {
    const auto found = memory_[rank].find(cell);
    return found == memory_[rank].end() ? mix(random_(), 1) : found->second;
  }

  [[nodiscard]] bool shares_rank(const Op& op, Stage other) const {
    return problem_.placement.rank_of(op.stage, op.replica) ==
           problem_.placement.rank_of(other, op.replica);
  }

  void read_inputs(std::size_t rank, const Op& op) {
    if (op.kind == OpKind::none || !is_compute(op.kind)) return;
    Value value = mix(op.stage, static_cast<Value>(op.microbatch) * 31 + op.replica);
    const auto take = [&](Op from, Stage stage) {
      from.stage = static_cast<std::uint16_t>(stage);
      value = mix(value, shares_rank(op, stage)
                             ? read(rank, {from, -1})
                             : read(rank, {forward_or_gradient(op), static_cast<int>(stage)}));
    };
    const Op mine = forward_or_gradient(op);
    if (op.kind == OpKind::forward) {
      for (const Stage from : problem_.graph.predecessors(op.stage)) take(mine, from);
    } else if (op.kind == OpKind::backward_weight) {
      value = mix(value, read(rank, {mine, -1}));
    } else {
      Op forward = mine;
      forward.kind = OpKind::forward;
      value = mix(value, read(rank, {forward, -1}));
      for (const Stage from : problem_.graph.successors(op.stage)) take(mine, from);
    }
    computing_[{rank, op}] = value;
  }

  void write_outputs(std::size_t rank, const Op& op) {
    if (op.kind == OpKind::none || !is_compute(op.kind)) return;
    const Value value = computing_.at({rank, op});
    if (op.kind != OpKind::backward_weight) memory_[rank][{forward_or_gradient(op), -1}] = value;
    Op result = op;
    if (op.kind == OpKind::forward) {
      if (problem_.graph.successors(op.stage).empty()) results_[op] = value;
      return;
    }
    // Gradients of a stage and microbatch add up; I alone makes none for a weight. A full backward
    // makes what its two parts do.
    if (op.kind == OpKind::backward) result.kind = OpKind::backward_weight;
    if (op.kind == OpKind::backward) {
      results_[result] +=
          mix(mix(op.stage, static_cast<Value>(op.microbatch) * 31 + op.replica), value);
    } else {
      results_[result] += value;
    }
  }

  const Problem& problem_;
  const Program& program_;
  Semantics semantics_;
  std::mt19937_64 random_;
  std::vector<Stream> streams_;
  std::map<Channel, std::vector<Message>> messages_;
  std::map<std::pair<Channel, bool>, std::size_t> issued_;
  std::map<Place, std::pair<Channel, std::size_t>> message_of_;
  std::map<std::pair<std::size_t, CommunicatorId>, std::size_t> calls_;
  std::map<std::pair<CommunicatorId, std::size_t>, std::vector<Place>> rounds_;
  std::map<Place, std::pair<CommunicatorId, std::size_t>> round_of_;
  std::vector<std::vector<std::uint8_t>> began_, ended_;  // [rank][instruction]
  std::map<std::tuple<std::size_t, std::uint32_t, std::uint32_t>, bool> recorded_;
  std::vector<std::map<Cell, Value>> memory_;  // [rank]
  std::map<std::pair<std::size_t, Op>, Value> computing_;
  std::map<Op, Value> results_;
};

}  // namespace counterflow::testing
