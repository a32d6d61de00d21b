#include "scheduler/verify/wait_graph.h"

#include <algorithm>
#include <utility>

#include "scheduler/graph/blocking.h"

namespace counterflow {

WaitGraph::WaitGraph(const Program& program, const References& references, Semantics semantics)
    : program_(program), references_(references), semantics_(semantics) {
  for (const RankProgram& rank : program.ranks) {
    bases_.push_back(static_cast<Vertex>(size_));
    size_ += rank.instructions.size();
  }
  DigraphBuilder builder;
  builder.reserve(5 * size_);
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) add_rank(rank, builder);
  add_collectives(builder);
  graph_ = std::move(builder).build(static_cast<Vertex>(2 * size_ + meetings_));
}

WaitGraph::Place WaitGraph::place(Vertex vertex) const {
  const Vertex flat = vertex / 2;
  const auto rank =
      static_cast<std::size_t>(std::ranges::upper_bound(bases_, flat) - bases_.begin()) - 1;
  return {rank, flat - bases_[rank], vertex % 2 == 1};
}

void WaitGraph::add_rank(std::size_t rank, DigraphBuilder& builder) {
  const RankProgram& list = program_.ranks[rank];
  const Recordings& recordings = references_.recordings[rank];
  std::vector<std::uint32_t> last(list.streams.size(), kNone);
  for (std::uint32_t i = 0; i < list.instructions.size(); ++i) {
    const Instruction& instruction = list.instructions[i];
    builder.add(begin_of(rank, i), end_of(rank, i), Reason::begin);
    const std::uint32_t before = std::exchange(last[instruction.stream], i);
    if (before != kNone) {
      const Instruction& earlier = list.instructions[before];
      const bool releases = earlier.kind == InstructionKind::transfer &&
                            releases_stream_at_begin(semantics_, list.transfers_of(earlier));
      builder.add(releases ? begin_of(rank, before) : end_of(rank, before), begin_of(rank, i),
                  Reason::stream);
    }
    for (const EventWait& wait : list.waits_of(instruction)) {
      const std::uint32_t source = recordings.recorder(wait);
      starves_ |= source == kNone;
      if (source != kNone) builder.add(end_of(rank, source), begin_of(rank, i), Reason::event);
    }
    if (instruction.kind == InstructionKind::transfer) add_peers(rank, i, builder);
  }
}

void WaitGraph::add_peers(std::size_t rank, std::uint32_t index, DigraphBuilder& builder) {
  const RankProgram& list = program_.ranks[rank];
  const Range body = list.instructions[index].body;
  for (std::uint32_t t = body.first; t < body.first + body.count; ++t) {
    // A buffered send ends by itself.
    if (semantics_ == Semantics::buffered && list.transfers[t].is_send) continue;
    const Matching::End other = references_.meets.partner(rank, t);
    if (!other.exists()) {
      starves_ = true;
      continue;
    }
    builder.add(begin_of(other.rank, references_.meets.instruction(other.rank, other.transfer)),
                end_of(rank, index), Reason::peer);
  }
}

// A communicator's k-th collective ends on every member when all members have begun theirs. One
// meeting point each keeps the edges linear in the members.
void WaitGraph::add_collectives(DigraphBuilder& builder) {
  std::vector<std::vector<std::vector<Place>>> calls;  // [communicator][k] its members' places
  for (std::size_t rank = 0; rank < program_.ranks.size(); ++rank) {
    const RankProgram& list = program_.ranks[rank];
    if (list.collectives.empty()) continue;
    calls.resize(program_.communicators.size());
    std::vector<std::size_t> count(program_.communicators.size());
    for (std::uint32_t i = 0; i < list.instructions.size(); ++i) {
      const Instruction& instruction = list.instructions[i];
      if (instruction.kind != InstructionKind::collective) continue;
      auto& of_communicator = calls[instruction.communicator];
      const std::size_t k = count[instruction.communicator]++;
      if (k == of_communicator.size()) of_communicator.emplace_back();
      of_communicator[k].push_back({rank, i, false});
    }
  }
  for (std::size_t c = 0; c < calls.size(); ++c) {
    for (const auto& members : calls[c]) {
      starves_ |= members.size() < program_.communicators[c].members.size();
      const auto meeting = static_cast<Vertex>(2 * size_ + meetings_++);
      for (const auto& [rank, index, is_end] : members) {
        builder.add(begin_of(rank, index), meeting, Reason::peer);
        builder.add(meeting, end_of(rank, index), Reason::peer);
      }
    }
  }
}

}  // namespace counterflow
