#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "scheduler/graph/blocking.h"
#include "scheduler/graph/digraph.h"
#include "scheduler/graph/matching.h"
#include "scheduler/graph/recordings.h"
#include "scheduler/ir/schedule_file.h"
#include "scheduler/verify/rules.h"

// Every instruction has a begin and an end, and nothing is chosen at run time, so a program
// completes for every timing exactly if the graph of "waits for" over begins and ends has no cycle.
namespace counterflow::rules {
namespace {

class WaitGraph {
 public:
  WaitGraph(const Program& program, Semantics semantics)
      : program_(program), semantics_(semantics), matching_(program) {
    for (const RankProgram& rank : program.ranks) {
      bases_.push_back(static_cast<Vertex>(size_));
      size_ += rank.instructions.size();
    }
    DigraphBuilder builder;
    builder.reserve(5 * size_);
    for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) add_rank(rank, builder);
    graph_ = std::move(builder).build(static_cast<Vertex>(2 * size_));
  }

  [[nodiscard]] const Digraph& graph() const { return graph_; }
  // Is there a transfer that waits for another end that does not exist?
  [[nodiscard]] bool lacks_peers() const { return lacks_peers_; }

  struct Place {
    std::size_t rank;
    std::uint32_t index;
    bool is_end;
  };
  [[nodiscard]] Place place(Vertex vertex) const {
    const Vertex flat = vertex / 2;
    const auto rank =
        static_cast<std::size_t>(std::ranges::upper_bound(bases_, flat) - bases_.begin()) - 1;
    return {rank, flat - bases_[rank], vertex % 2 == 1};
  }

 private:
  [[nodiscard]] Vertex begin_of(std::size_t rank, std::size_t index) const {
    return static_cast<Vertex>(2 * (bases_[rank] + index));
  }
  [[nodiscard]] Vertex end_of(std::size_t rank, std::size_t index) const {
    return begin_of(rank, index) + 1;
  }

  [[nodiscard]] bool blocks_stream(const RankProgram& list, const Instruction& instruction) const {
    return instruction.kind != InstructionKind::transfer ||
           !releases_stream_at_begin(semantics_, list.transfers_of(instruction));
  }

  void add_rank(std::size_t rank, DigraphBuilder& builder) {
    const RankProgram& list = program_.ranks[rank];
    const Recordings recordings(list);
    std::vector<std::uint32_t> last(list.streams.size(), kNone);
    for (std::uint32_t i = 0; i < list.instructions.size(); ++i) {
      const Instruction& instruction = list.instructions[i];
      builder.add(begin_of(rank, i), end_of(rank, i), Reason::begin);
      std::uint32_t& before = last[instruction.stream];
      if (before != kNone) {
        const bool blocks = blocks_stream(list, list.instructions[before]);
        builder.add(blocks ? end_of(rank, before) : begin_of(rank, before), begin_of(rank, i),
                    Reason::stream);
      }
      before = i;
      for (const EventWait& wait : list.waits_of(instruction)) {
        const std::uint32_t source = recordings.recorder(wait);
        if (source != kNone) builder.add(end_of(rank, source), begin_of(rank, i), Reason::event);
      }
      add_peers(rank, i, builder);
    }
  }

  void add_peers(std::size_t rank, std::uint32_t index, DigraphBuilder& builder) {
    const RankProgram& list = program_.ranks[rank];
    const Instruction& instruction = list.instructions[index];
    if (instruction.kind != InstructionKind::transfer) return;
    for (std::uint32_t k = 0; k < instruction.body.count; ++k) {
      const std::uint32_t t = instruction.body.first + k;
      // A buffered send ends by itself.
      if (semantics_ == Semantics::buffered && list.transfers[t].is_send) continue;
      const Matching::End other = matching_.partner(rank, t);
      if (!other.exists()) {
        lacks_peers_ = true;
        continue;
      }
      builder.add(begin_of(other.rank, matching_.instruction(other.rank, other.transfer)),
                  end_of(rank, index), Reason::peer);
    }
  }

  const Program& program_;
  Semantics semantics_;
  Matching matching_;
  std::vector<Vertex> bases_;
  std::size_t size_ = 0;
  bool lacks_peers_ = false;
  Digraph graph_;
};

std::string named(const Program& program, const WaitGraph::Place& place) {
  const Instruction& instruction = program.ranks[place.rank].instructions[place.index];
  return fmt::format("rank{} {}", place.rank, to_string(Slot{instruction.op, instruction.paired}));
}

std::string why(Reason reason) {
  switch (reason) {
    case Reason::stream:
      return "holds up";
    case Reason::event:
      return "makes what is needed by";
    case Reason::peer:
      return "is the other end of";
    default:
      return "precedes";
  }
}

// "rank0 0SEND_F1 <-> rank1 1SEND_F0", then the whole chain with reasons.
std::string describe(const Program& program, const WaitGraph& graph,
                     const std::vector<CycleStep>& cycle) {
  std::string blocked;
  std::string chain;
  for (std::size_t k = 0; k < cycle.size(); ++k) {
    const auto place = graph.place(cycle[k].vertex);
    const auto next = graph.place(cycle[(k + 1) % cycle.size()].vertex);
    const Instruction& instruction = program.ranks[place.rank].instructions[place.index];
    // The ends of transfers on the cycle are where ranks are stuck.
    if (place.is_end && instruction.kind == InstructionKind::transfer) {
      blocked += (blocked.empty() ? "" : " <-> ") + named(program, place);
    }
    if (cycle[k].reason == Reason::begin) continue;
    chain += fmt::format("{}{} {} {}", chain.empty() ? "" : "; ", named(program, place),
                         why(cycle[k].reason), named(program, next));
  }
  return fmt::format("cycle {}: {}", blocked, chain);
}

}  // namespace

bool completes(const Program& program, Semantics semantics) {
  const WaitGraph graph(program, semantics);
  return !graph.lacks_peers() &&
         topological_order(graph.graph()).size() == num_vertices(graph.graph());
}

void deadlock(const Program& program, Semantics semantics, Diagnostics& out) {
  const WaitGraph graph(program, semantics);
  std::vector<CycleStep> cycle = find_cycle(graph.graph());
  if (cycle.empty()) return;
  // Told from the transfer of the lowest rank on, so that the same cycle always reads the same.
  const auto rotation = [&](const CycleStep& step) {
    const auto place = graph.place(step.vertex);
    const bool stuck = place.is_end && program.ranks[place.rank].instructions[place.index].kind ==
                                           InstructionKind::transfer;
    return std::tuple(!stuck, place.rank, place.index);
  };
  std::rotate(cycle.begin(), std::ranges::min_element(cycle, {}, rotation), cycle.end());
  const auto place = graph.place(cycle.front().vertex);
  out.push_back({.rule = "deadlock",
                 .rank = static_cast<Rank>(place.rank),
                 .index = place.index,
                 .op = program.ranks[place.rank].instructions[place.index].op,
                 .message = fmt::format("under {} semantics: {}", name(semantics),
                                        describe(program, graph, cycle))});
}

}  // namespace counterflow::rules
