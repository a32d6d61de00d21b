#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "report/draw.h"
#include "report/report.h"
#include "scheduler/ir/program.h"
#include "scheduler/ir/timeline.h"

// Programs and timelines written down instruction by instruction, for tests of the report.
namespace counterflow::testing {

inline constexpr std::uint32_t kComputeStream = 0;
inline constexpr std::uint32_t kSecondStream = 1;
inline constexpr std::uint32_t kTransferStream = 2;

[[nodiscard]] inline Op op_of(OpKind kind, int stage, int microbatch, int replica = 0) {
  return {kind, static_cast<std::uint8_t>(replica), static_cast<std::uint16_t>(stage), microbatch};
}
[[nodiscard]] inline Op f(int stage, int microbatch, int replica = 0) {
  return op_of(OpKind::forward, stage, microbatch, replica);
}
[[nodiscard]] inline Op b(int stage, int microbatch, int replica = 0) {
  return op_of(OpKind::backward, stage, microbatch, replica);
}
[[nodiscard]] inline Op i(int stage, int microbatch) {
  return op_of(OpKind::backward_input, stage, microbatch);
}
[[nodiscard]] inline Op w(int stage, int microbatch) {
  return op_of(OpKind::backward_weight, stage, microbatch);
}

// A program together with its timeline. Every rank has two compute streams and one for transfers.
class HandMade {
 public:
  HandMade(int ranks, int stages, int microbatches) {
    program_.schedule = "hand-made";
    program_.stages = stages;
    program_.microbatches = microbatches;
    Communicator everybody;
    for (int r = 0; r < ranks; ++r) everybody.members.push_back(r);
    program_.communicators.push_back(everybody);
    RankProgram rank;
    rank.streams = {{StreamRole::compute, 0, "compute"},
                    {StreamRole::second_compute, 0, "second"},
                    {StreamRole::p2p, 1, "transfers"}};
    program_.ranks.assign(static_cast<std::size_t>(ranks), rank);
    timeline_.ranks.resize(static_cast<std::size_t>(ranks));
  }

  HandMade& run(int rank, Op op, std::int64_t begin, std::int64_t end,
                std::uint32_t stream = kComputeStream, Op paired = {}) {
    Instruction instruction;
    instruction.kernel = static_cast<std::uint32_t>(program_.kernels.size());
    Kernel kernel;
    kernel.kind = op.kind;
    kernel.paired_kind = paired.kind;
    kernel.stage = op.stage;
    kernel.paired_stage = paired.stage;
    kernel.replica = op.replica;
    kernel.paired_replica = paired.replica;
    kernel.duration = Time{std::max<std::int64_t>(end - begin, 0)};
    kernel.allocates = Bytes{7};
    program_.kernels.push_back(kernel);
    instruction.stream = static_cast<StreamId>(stream);
    instruction.op = op;
    instruction.paired = paired;
    return add(rank, instruction, begin, end);
  }

  HandMade& pair(int rank, Op forward, Op backward, std::int64_t begin, std::int64_t end) {
    return run(rank, forward, begin, end, kComputeStream, backward);
  }

  // A message of the activation of `stage`; the receive records an event.
  HandMade& send(int rank, int to, int stage, int microbatch, std::uint32_t sequence,
                 std::int64_t begin, std::int64_t end) {
    return transfer(rank, to, true, stage, microbatch, sequence, begin, end);
  }
  HandMade& receive(int rank, int from, int stage, int microbatch, std::uint32_t sequence,
                    std::int64_t begin, std::int64_t end) {
    return transfer(rank, from, false, stage - 1, microbatch, sequence, begin, end);
  }

  // Lets the last instruction of a rank wait for the last event the rank recorded.
  HandMade& waits(int rank) {
    RankProgram& program = at(rank);
    Instruction& last = program.instructions.back();
    last.waits = {static_cast<std::uint32_t>(program.waits.size()), 1};
    program.waits.push_back({program.events - 1, 0});
    return *this;
  }

  HandMade& collective(int rank, Op op, std::int64_t begin, std::int64_t end) {
    Instruction instruction;
    instruction.kind = InstructionKind::collective;
    instruction.stream = kTransferStream;
    instruction.communicator = 0;
    instruction.op = op;
    instruction.body = {static_cast<std::uint32_t>(at(rank).collectives.size()), 1};
    at(rank).collectives.push_back({CollectiveKind::reduce_scatter, 3, kNone, 0, Bytes{64}});
    return add(rank, instruction, begin, end);
  }

  HandMade& step_end(int rank, std::int64_t at_time) {
    Instruction instruction;
    instruction.kind = InstructionKind::step_end;
    return add(rank, instruction, at_time, at_time);
  }

  HandMade& memory(int rank, std::int64_t at_time, std::int64_t held) {
    timeline_.ranks[static_cast<std::size_t>(rank)].memory.push_back({Time{at_time}, Bytes{held}});
    return *this;
  }

  [[nodiscard]] Program& program() { return program_; }
  [[nodiscard]] Timeline& timeline() { return timeline_; }
  [[nodiscard]] RankProgram& at(int rank) { return program_.ranks[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] Report report() const { return measure(program_, timeline_); }

 private:
  HandMade& add(int rank, Instruction instruction, std::int64_t begin, std::int64_t end) {
    at(rank).instructions.push_back(instruction);
    timeline_.ranks[static_cast<std::size_t>(rank)].instructions.push_back(
        {Time{begin}, Time{end}});
    return *this;
  }

  HandMade& transfer(int rank, int peer, bool is_send, int from, int microbatch,
                     std::uint32_t sequence, std::int64_t begin, std::int64_t end) {
    RankProgram& program = at(rank);
    Transfer transfer;
    transfer.is_send = is_send;
    transfer.peer = static_cast<std::uint16_t>(peer);
    transfer.sequence = sequence;
    transfer.payload.from = static_cast<std::uint16_t>(from);
    transfer.payload.to = static_cast<std::uint16_t>(from + 1);
    transfer.payload.microbatch = microbatch;
    transfer.size = Bytes{4096};
    Instruction instruction;
    instruction.kind = InstructionKind::transfer;
    instruction.stream = kTransferStream;
    instruction.communicator = 0;
    instruction.op = op_of(is_send ? OpKind::send_forward : OpKind::receive_forward,
                           is_send ? from : from + 1, microbatch);
    instruction.records = program.events++;
    instruction.body = {static_cast<std::uint32_t>(program.transfers.size()), 1};
    program.transfers.push_back(transfer);
    return add(rank, instruction, begin, end);
  }

  Program program_;
  Timeline timeline_;
};

// Two ranks, a stage on each, two microbatches: 1F1B with F and B of 10 and 20 us and a message
// that is 5 us on its way.
[[nodiscard]] inline HandMade two_ranks() {
  HandMade run(2, 2, 2);
  constexpr std::int64_t us = 1000;
  run.run(0, f(0, 0), 0, 10 * us).send(0, 1, 0, 0, 0, 10 * us, 15 * us);
  run.run(0, f(0, 1), 10 * us, 20 * us).send(0, 1, 0, 1, 1, 20 * us, 25 * us);
  run.receive(1, 0, 1, 0, 0, 0, 15 * us).run(1, f(1, 0), 15 * us, 25 * us).waits(1);
  run.run(1, b(1, 0), 25 * us, 45 * us);
  run.receive(1, 0, 1, 1, 1, 15 * us, 25 * us).run(1, f(1, 1), 45 * us, 55 * us).waits(1);
  run.run(1, b(1, 1), 55 * us, 75 * us);
  run.run(0, b(0, 0), 50 * us, 70 * us).run(0, b(0, 1), 80 * us, 100 * us);
  run.memory(0, 0, 100).memory(0, 10 * us, 200).memory(0, 70 * us, 100).memory(0, 100 * us, 50);
  run.memory(1, 0, 0).memory(1, 15 * us, 100).memory(1, 45 * us, 0);
  return run;
}

}  // namespace counterflow::testing
