#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "scheduler/graph/digraph.h"
#include "scheduler/ir/diagnostic_text.h"
#include "scheduler/ir/schedule_file.h"
#include "scheduler/verify/dry_run.h"
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

// The places of a cycle where ranks are stuck, or, where none waits for the end of a transfer or
// collective, all of it: "rank0 0SEND_F1 <-> rank1 1SEND_F0".
class Members {
 public:
  Members(const Program& program, const WaitGraph& graph, const std::vector<CycleStep>& cycle) {
    for (const CycleStep& step : cycle) {
      if (graph.is_meeting(step.vertex)) continue;
      const auto place = graph.place(step.vertex);
      const InstructionKind kind = program.ranks[place.rank].instructions[place.index].kind;
      collectives_ |= kind == InstructionKind::collective;
      transfers_ |= kind == InstructionKind::transfer;
      several_ranks_ |= place.rank != graph.place(cycle.front().vertex).rank;
      const std::string name = named(program, place);
      if (std::ranges::find(all_, name) == all_.end()) all_.push_back(name);
      if (place.is_end && kind != InstructionKind::run) stuck_.push_back(name);
    }
  }

  [[nodiscard]] std::string text() const {
    return fmt::format("{}", fmt::join(stuck_.empty() ? all_ : stuck_, " <-> "));
  }

  // What users try first, and what helps.
  [[nodiscard]] std::string_view hint() const {
    if (collectives_ || !transfers_) return "";
    if (!several_ranks_) return "; a transfer of the rank stands at a wrong place: verify --repair";
    return "; swapping sends and receives on odd ranks alone is no proof against it, one order of "
           "all transfers is: verify --repair";
  }

 private:
  std::vector<std::string> all_;
  std::vector<std::string> stuck_;
  bool collectives_ = false;
  bool transfers_ = false;
  bool several_ranks_ = false;
};

// What of the instruction where a cycle is told from is stuck: of a group, the transfer whose other
// end is what comes before it in the cycle.
Op stuck_op(const Program& program, const Matching& meets, const WaitGraph& graph,
            const std::vector<CycleStep>& cycle) {
  const auto place = graph.place(cycle.front().vertex);
  const RankProgram& list = program.ranks[place.rank];
  const Instruction& instruction = list.instructions[place.index];
  if (instruction.kind != InstructionKind::transfer || graph.is_meeting(cycle.back().vertex)) {
    return instruction.op;
  }
  const auto before = graph.place(cycle.back().vertex);
  for (std::uint32_t k = 0; k < instruction.body.count; ++k) {
    const std::uint32_t transfer = instruction.body.first + k;
    const Matching::End other = meets.partner(place.rank, transfer);
    if (other.exists() && other.rank == before.rank &&
        meets.instruction(other.rank, other.transfer) == before.index) {
      return op_of(instruction, list.transfers[transfer]);
    }
  }
  return instruction.op;
}

// Who is stuck, then the whole chain with reasons.
std::string describe(const Program& program, const WaitGraph& graph,
                     const std::vector<CycleStep>& cycle) {
  const Members members(program, graph, cycle);
  std::string chain;
  for (std::size_t k = 0; k < cycle.size(); ++k) {
    if (graph.is_meeting(cycle[k].vertex)) continue;
    const auto place = graph.place(cycle[k].vertex);
    // Members of a collective meet in a point of its own, which has no name.
    const std::size_t step = graph.is_meeting(cycle[(k + 1) % cycle.size()].vertex) ? 2 : 1;
    const auto next = graph.place(cycle[(k + step) % cycle.size()].vertex);
    if (cycle[k].reason == Reason::begin) continue;
    chain += fmt::format("{}{} {} {}", chain.empty() ? "" : "; ", named(program, place),
                         why(cycle[k].reason), named(program, next));
  }
  return fmt::format("cycle {}: {}{}", members.text(), chain, members.hint());
}

}  // namespace

bool completes(const Program& program, const References& references, Semantics semantics) {
  return runs_through(program, references, semantics);
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
                 .op = stuck_op(program, references.meets, graph, cycle),
                 .message = fmt::format("under {} semantics: {}", name(semantics),
                                        describe(program, graph, cycle))});
}

}  // namespace counterflow::rules
