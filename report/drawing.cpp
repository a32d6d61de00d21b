#include "report/drawing.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace counterflow {
namespace {

// The op that names one end of a message.
Op named(const Transfer& transfer) {
  const Payload& payload = transfer.payload;
  const bool gradient = payload.kind == PayloadKind::gradient;
  Op op;
  if (transfer.is_send) {
    op.kind = gradient ? OpKind::send_backward : OpKind::send_forward;
    op.stage = payload.from;
  } else {
    op.kind = gradient ? OpKind::receive_backward : OpKind::receive_forward;
    op.stage = payload.to;
  }
  op.replica = payload.replica;
  op.microbatch = payload.microbatch;
  return op;
}

Bytes bytes_moved(const RankProgram& rank, const Instruction& instruction) {
  Bytes sum;
  if (instruction.kind == InstructionKind::collective) {
    for (const Collective& c : entries(rank.collectives, instruction.body)) sum += c.size;
  }
  for (const Transfer& transfer : rank.transfers_of(instruction)) sum += transfer.size;
  return sum;
}

Lane make_lane(const RankProgram& rank, const RankTimeline& timeline) {
  Lane lane;
  lane.streams = rank.streams;
  lane.memory = timeline.memory;
  lane.boxes.reserve(rank.instructions.size());
  lane.ops.reserve(rank.instructions.size() + rank.transfers.size());
  for (std::size_t i = 0; i < rank.instructions.size(); ++i) {
    const Instruction& instruction = rank.instructions[i];
    const auto first = static_cast<std::uint32_t>(lane.ops.size());
    if (instruction.kind == InstructionKind::transfer) {
      for (const Transfer& transfer : rank.transfers_of(instruction)) {
        lane.ops.push_back(named(transfer));
      }
    } else {
      if (instruction.op.kind != OpKind::none) lane.ops.push_back(instruction.op);
      if (instruction.paired.kind != OpKind::none) lane.ops.push_back(instruction.paired);
    }
    const Range ops{first, static_cast<std::uint32_t>(lane.ops.size()) - first};
    lane.boxes.push_back({timeline.instructions[i], instruction.kind, instruction.stream, ops,
                          bytes_moved(rank, instruction)});
  }
  return lane;
}

}  // namespace

Drawing make_drawing(const DrawContext& run) {
  Drawing drawing;
  drawing.report = run.report;
  std::vector<std::vector<Wait>> waits = waits_of(run.program);
  for (std::size_t r = 0; r < run.program.ranks.size(); ++r) {
    drawing.lanes.push_back(make_lane(run.program.ranks[r], run.timeline.ranks[r]));
    drawing.lanes.back().waits = std::move(waits[r]);
    if (r < run.memory_limits.size()) drawing.lanes.back().memory_limit = run.memory_limits[r];
  }
  return drawing;
}

DrawnTime drawn_time(const Drawing& drawing) {
  std::optional<Interval> extent;
  std::optional<Time> origin;
  for (const Lane& lane : drawing.lanes) {
    for (const Box& box : lane.boxes) {
      if (box.when.begin.count() < 0) continue;
      if (!extent) extent = box.when;
      extent->begin = std::min(extent->begin, box.when.begin);
      extent->end = std::max(extent->end, box.when.end);
      const bool computes = box.kind == InstructionKind::run && lane.on_compute_stream(box);
      if (computes && (!origin || box.when.begin < *origin)) {
        origin = box.when.begin;
      }
    }
  }
  const Interval drawn = extent.value_or(Interval{});
  return {origin.value_or(drawn.begin), drawn.begin, drawn.end};
}

}  // namespace counterflow
