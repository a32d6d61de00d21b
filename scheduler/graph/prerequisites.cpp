#include "scheduler/graph/prerequisites.h"

#include <algorithm>

#include "scheduler/graph/blocking.h"
#include "scheduler/graph/recordings.h"

namespace counterflow {

struct Prerequisites::Edges {
  std::vector<Edge> at_begin, at_end;
};

Prerequisites::Prerequisites(const Program& program, const ExecutionModel& execution) {
  counts_.assign(program.size(), 0);
  ranks_.reserve(counts_.size());
  bases_.reserve(program.ranks.size());
  Edges edges;
  edges.at_begin.reserve(counts_.size());
  edges.at_end.reserve(3 * counts_.size());
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) {
    const RankProgram& list = program.ranks[rank];
    const auto base = static_cast<Index>(ranks_.size());
    bases_.push_back(base);
    ranks_.insert(ranks_.end(), list.instructions.size(), static_cast<std::uint32_t>(rank));
    add_events(list, base, edges);
    add_queues(program, list, base, execution, edges);
  }
  for (const auto* list : {&edges.at_begin, &edges.at_end}) {
    for (const Edge& edge : *list) ++counts_[edge.to];
  }
  at_begin_ = sorted(edges.at_begin);
  at_end_ = sorted(edges.at_end);
}

void Prerequisites::add_events(const RankProgram& rank, Index base, Edges& edges) {
  const Recordings recordings(rank);
  for (std::size_t i = 0; i < rank.instructions.size(); ++i) {
    const auto index = static_cast<Index>(base + i);
    for (const EventWait& wait : rank.waits_of(rank.instructions[i])) {
      const std::uint32_t recorder = recordings.recorder(wait);
      if (recorder == kNone) {
        ++counts_[index];  // it waits for ever
      } else {
        edges.at_end.push_back({base + recorder, index});
      }
    }
  }
}

void Prerequisites::add_queues(const Program& program, const RankProgram& rank, Index base,
                               const ExecutionModel& execution, Edges& edges) {
  // The last instruction on a stream, and whether it holds the stream until it ends.
  struct OnStream {
    Index last = kNone;
    bool holds = true;
  };
  std::vector<OnStream> on_stream(rank.streams.size());
  std::vector<Index> on_communicator(program.communicators.size(), kNone);
  std::vector<Index> in_queue(static_cast<std::size_t>(std::max(execution.hardware_queues, 0)),
                              kNone);
  Index launch = kNone;
  const auto follow = [](Index& last, Index index, std::vector<Edge>& list) {
    if (last != kNone) list.push_back({last, index});
    last = index;
  };
  auto index = base;
  for (const Instruction& instruction : rank.instructions) {
    const bool is_transfer = instruction.kind == InstructionKind::transfer;
    const bool moves_data = is_transfer || instruction.kind == InstructionKind::collective;
    if (!(is_transfer && execution.independent_transfers)) {
      OnStream& stream = on_stream[instruction.stream];
      follow(stream.last, index, stream.holds ? edges.at_end : edges.at_begin);
      stream.holds = !is_transfer ||
                     !releases_stream_at_begin(execution.semantics, rank.transfers_of(instruction));
    }
    if (moves_data && execution.serial_communicators) {
      follow(on_communicator[instruction.communicator], index, edges.at_end);
    }
    if (moves_data && execution.launch_order != LaunchOrder::independent) {
      follow(launch, index,
             execution.launch_order == LaunchOrder::serial ? edges.at_end : edges.at_begin);
    }
    if (!in_queue.empty()) {
      follow(in_queue[instruction.stream % in_queue.size()], index, edges.at_begin);
    }
    ++index;
  }
}

Prerequisites::Lists Prerequisites::sorted(const std::vector<Edge>& edges) const {
  Lists lists;
  lists.firsts.assign(counts_.size() + 1, 0);
  for (const Edge& edge : edges) ++lists.firsts[edge.from + 1];
  for (std::size_t i = 1; i < lists.firsts.size(); ++i) lists.firsts[i] += lists.firsts[i - 1];
  lists.entries.resize(edges.size());
  std::vector<std::uint32_t> next(lists.firsts.begin(), lists.firsts.end() - 1);
  for (const Edge& edge : edges) lists.entries[next[edge.from]++] = edge.to;
  return lists;
}

}  // namespace counterflow
