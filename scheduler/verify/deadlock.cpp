#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "scheduler/graph/digraph.h"
#include "scheduler/ir/schedule_file.h"
#include "scheduler/verify/rules.h"
#include "scheduler/verify/wait_graph.h"

namespace counterflow::rules {
namespace {

// "rank0 0SEND_F1", "rank0 [0SEND_F1;0RECV_B0]", "rank0 all_reduce 3".
std::string named(const Program& program, const WaitGraph::Place& place) {
  const RankProgram& list = program.ranks[place.rank];
  const Instruction& instruction = list.instructions[place.index];
  std::string text = fmt::format("rank{} ", place.rank);
  if (instruction.kind == InstructionKind::collective) {
    const Collective& collective = list.collectives[instruction.body.first];
    return text + fmt::format("{} {}", name(collective.kind), collective.sequence);
  }
  if (instruction.kind == InstructionKind::transfer) {
    append_text(text, list.transfers_of(instruction));
    return text;
  }
  append_text(text, Slot{instruction.op, instruction.paired});
  return text;
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
  bool all_transfers = true;
  for (std::size_t k = 0; k < cycle.size(); ++k) {
    if (graph.is_meeting(cycle[k].vertex)) continue;
    const auto place = graph.place(cycle[k].vertex);
    // Members of a collective meet in a point of its own, which has no name.
    const std::size_t step = graph.is_meeting(cycle[(k + 1) % cycle.size()].vertex) ? 2 : 1;
    const auto next = graph.place(cycle[(k + step) % cycle.size()].vertex);
    const Instruction& instruction = program.ranks[place.rank].instructions[place.index];
    // The ends of transfers and collectives on the cycle are where ranks are stuck.
    if (place.is_end && instruction.kind != InstructionKind::run) {
      blocked += (blocked.empty() ? "" : " <-> ") + named(program, place);
      all_transfers &= instruction.kind == InstructionKind::transfer;
    }
    if (cycle[k].reason == Reason::begin) continue;
    chain += fmt::format("{}{} {} {}", chain.empty() ? "" : "; ", named(program, place),
                         why(cycle[k].reason), named(program, next));
  }
  // What users try first, and what helps.
  const char* hint = all_transfers
                         ? "; swapping sends and receives on odd ranks alone is no proof against "
                           "it, one order of all transfers is: verify --repair"
                         : "";
  return fmt::format("cycle {}: {}{}", blocked, chain, hint);
}

}  // namespace

bool completes(const Program& program, const References& references, Semantics semantics) {
  const WaitGraph graph(program, references, semantics);
  return !graph.starves() && topological_order(graph.graph()).size() == num_vertices(graph.graph());
}

void deadlock(const Program& program, const References& references, Semantics semantics,
              Diagnostics& out) {
  const WaitGraph graph(program, references, semantics);
  std::vector<CycleStep> cycle = find_cycle(graph.graph());
  if (cycle.empty()) return;
  // Told from where the lowest rank is stuck on, so that the same cycle always reads the same.
  const auto rotation = [&](const CycleStep& step) {
    if (graph.is_meeting(step.vertex)) return std::tuple(true, program.ranks.size(), 0U);
    const auto place = graph.place(step.vertex);
    const bool stuck = place.is_end && program.ranks[place.rank].instructions[place.index].kind !=
                                           InstructionKind::run;
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
