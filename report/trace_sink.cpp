#include "report/trace_sink.h"

#include <vector>

#include "report/trace_layout.h"
#include "scheduler/graph/matching.h"

namespace counterflow {
namespace {

constexpr std::uint32_t kWaits = kNone - 1;  // the receive was shown, its send not yet

// Shows the slices and follows the messages between them.
class Slices {
 public:
  Slices(const Program& program, const TraceLayout& layout, TraceSink& sink)
      : program_(program), layout_(layout), sink_(sink), matching_(program) {
    for (const RankProgram& rank : program.ranks) {
      messages_.emplace_back(rank.transfers.size(), kNone);
      tracks_.emplace_back(rank.instructions.size(), kNone);
    }
    for (const auto& slice : layout.slices) tracks_[slice.rank][slice.instruction] = slice.track;
  }

  void show() {
    for (const TraceLayout::Slice& slice : layout_.slices) show(slice);
  }

 private:
  // A message that arrives with a slice already shown.
  struct Arrival {
    std::uint32_t rank = 0;
    std::uint32_t track = 0;
    std::uint64_t message = 0;
  };

  void show(const TraceLayout::Slice& slice) {
    const RankProgram& rank = program_.ranks[slice.rank];
    const Instruction& instruction = rank.instructions[slice.instruction];
    sent_.clear();
    received_.clear();
    arrivals_.clear();
    if (instruction.kind == InstructionKind::transfer) {
      for (std::uint32_t k = 0; k < instruction.body.count; ++k) {
        const std::uint32_t transfer = instruction.body.first + k;
        if (rank.transfers[transfer].is_send) {
          send(slice.rank, transfer);
        } else {
          receive(slice.rank, transfer);
        }
      }
    }
    const TraceLabel label = trace_label(rank, instruction);
    sink_.slice({slice.rank, slice.track, slice.when, label, sent_, received_});
    for (const Arrival& each : arrivals_) {
      sink_.arrival(each.rank, each.track, slice.when.begin, each.message);
    }
  }

  void send(std::size_t rank, std::uint32_t transfer) {
    const Matching::End receiver = matching_.partner(rank, transfer);
    if (!receiver.exists()) return;
    const std::uint32_t track =
        tracks_[receiver.rank][matching_.instruction(receiver.rank, receiver.transfer)];
    if (track == kNone) return;  // it never ran
    const std::uint32_t message = sent_in_all_++;
    sent_.push_back(message);
    std::uint32_t& arriving = messages_[receiver.rank][receiver.transfer];
    if (arriving == kWaits) arrivals_.push_back({receiver.rank, track, message});
    arriving = message;
  }

  void receive(std::size_t rank, std::uint32_t transfer) {
    std::uint32_t& message = messages_[rank][transfer];
    if (message == kNone) {
      message = kWaits;
    } else {
      received_.push_back(message);
    }
  }

  const Program& program_;
  const TraceLayout& layout_;
  TraceSink& sink_;
  const Matching matching_;
  std::vector<std::vector<std::uint32_t>> messages_;  // [rank][receive] which arrives with it
  std::vector<std::vector<std::uint32_t>> tracks_;    // [rank][instruction]
  std::uint32_t sent_in_all_ = 0;
  // Of the slice at hand.
  std::vector<std::uint64_t> sent_;
  std::vector<std::uint64_t> received_;
  std::vector<Arrival> arrivals_;
};

}  // namespace

void write_trace(const DrawContext& run, TraceSink& sink) {
  const TraceLayout layout = lay_out_trace(run.program, run.timeline);
  for (std::size_t r = 0; r < layout.tracks.size(); ++r) {
    sink.rank(r);
    for (std::size_t t = 0; t < layout.tracks[r].size(); ++t) {
      sink.track(r, t, layout.tracks[r][t]);
    }
  }
  for (std::size_t r = 0; r < run.timeline.ranks.size(); ++r) {
    for (const MemorySample& sample : run.timeline.ranks[r].memory) sink.memory(r, sample);
  }
  Slices(run.program, layout, sink).show();
}

}  // namespace counterflow
