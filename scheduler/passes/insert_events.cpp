#include <utility>
#include <vector>

#include "scheduler/graph/channels.h"
#include "scheduler/passes/passes.h"

namespace counterflow {
namespace {

// Which instruction of a rank makes or brings the payload of each (channel, microbatch).
class PayloadSources {
 public:
  PayloadSources(const Problem& problem, const Channels& channels)
      : channels_(channels),
        microbatches_(static_cast<std::size_t>(problem.microbatches)),
        made_(channels.size() * microbatches_, kNone),
        received_(made_.size(), kNone) {}

  void note(const RankProgram& rank, std::uint32_t index) {
    const Instruction& instruction = rank.instructions[index];
    if (instruction.kind == InstructionKind::run) {
      for (const Op& op : {instruction.op, instruction.paired}) {
        for (const Channels::Id id : channels_.outputs(op)) set(made_, id, op.microbatch, index);
      }
    }
    for (const Transfer& transfer : rank.transfers_of(instruction)) {
      if (transfer.is_send) continue;
      if (const auto id = channels_.find(transfer.payload)) {
        set(received_, *id, transfer.payload.microbatch, index);
      }
    }
  }
  [[nodiscard]] std::uint32_t made(Channels::Id id, Microbatch microbatch) const {
    return made_[at(id, microbatch)];
  }
  [[nodiscard]] std::uint32_t received(Channels::Id id, Microbatch microbatch) const {
    return received_[at(id, microbatch)];
  }

 private:
  [[nodiscard]] std::size_t at(Channels::Id id, Microbatch microbatch) const {
    return id * microbatches_ + static_cast<std::size_t>(microbatch);
  }
  // The first one counts; verify() objects to a second.
  void set(std::vector<std::uint32_t>& table, Channels::Id id, Microbatch microbatch,
           std::uint32_t index) const {
    std::uint32_t& entry = table[at(id, microbatch)];
    if (entry == kNone) entry = index;
  }

  const Channels& channels_;
  std::size_t microbatches_;
  std::vector<std::uint32_t> made_, received_;  // [channel][microbatch]
};

// Calls visit(index of the instruction waited for) for everything instruction needs from another.
template <typename Visit>
void for_each_source(const RankProgram& rank, const Instruction& instruction,
                     const Channels& channels, const PayloadSources& sources, Visit visit) {
  if (instruction.kind == InstructionKind::run) {
    for (const Op& op : {instruction.op, instruction.paired}) {
      for (const Channels::Id id : channels.inputs(op)) {
        const std::uint32_t source = sources.received(id, op.microbatch);
        if (channels[id].crosses_ranks() && source != kNone) visit(source);
      }
    }
  }
  for (const Transfer& transfer : rank.transfers_of(instruction)) {
    if (!transfer.is_send) continue;
    const auto id = channels.find(transfer.payload);
    if (!id) continue;
    const std::uint32_t source = sources.made(*id, transfer.payload.microbatch);
    if (source != kNone) visit(source);
  }
}

}  // namespace

Program insert_events(const Problem& problem, Program program) {
  const Channels channels(problem);
  PayloadSources sources(problem, channels);
  for (RankProgram& rank : program.ranks) {
    // A channel's messages are made on one rank and received on one other, so ranks do not disturb
    // each other in the table.
    const auto size = static_cast<std::uint32_t>(rank.instructions.size());
    for (std::uint32_t index = 0; index < size; ++index) sources.note(rank, index);
    std::size_t waits = 0;
    for (const Instruction& instruction : rank.instructions) {
      for_each_source(rank, instruction, channels, sources, [&](std::uint32_t source) {
        Instruction& recorder = rank.instructions[source];
        if (recorder.records == kNone) recorder.records = rank.events++;
        ++waits;
      });
    }
    rank.waits.reserve(waits);
    for (Instruction& instruction : rank.instructions) {
      instruction.waits.first = static_cast<std::uint32_t>(rank.waits.size());
      for_each_source(rank, instruction, channels, sources, [&](std::uint32_t source) {
        rank.waits.push_back({.event = rank.instructions[source].records, .generation = 0});
      });
      instruction.waits.count =
          static_cast<std::uint32_t>(rank.waits.size()) - instruction.waits.first;
    }
  }
  return program;
}

}  // namespace counterflow
