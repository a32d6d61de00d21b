#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "scheduler/graph/dependencies.h"
#include "scheduler/ir/schedule_file.h"
#include "scheduler/verify/rules.h"

namespace counterflow::rules {
namespace {

std::string_view explanation(Reason reason) {
  switch (reason) {
    case Reason::order:
      return "stands before, on its rank,";
    case Reason::activation:
      return "makes the input of";
    case Reason::gradient:
      return "makes the gradient for";
    case Reason::stash:
      return "makes the activations for";
    case Reason::weight:
      return "is the input gradient that must precede";
    default:
      return "must precede";
  }
}

}  // namespace

void acyclic(const Problem& problem, const Schedule& schedule, Diagnostics& out) {
  const Dependencies dependencies(problem, schedule);
  std::vector<CycleStep> cycle = find_cycle(dependencies.graph());
  if (cycle.empty()) return;
  // Told from the lowest rank's first slot on, so that the same cycle always reads the same.
  std::rotate(cycle.begin(), std::ranges::min_element(cycle, {}, &CycleStep::vertex), cycle.end());
  const auto slot_at = [&](Vertex vertex) {
    const auto [rank, position] = dependencies.place(vertex);
    return schedule.ranks[static_cast<std::size_t>(rank)][position];
  };
  const auto named = [&](Vertex vertex) {
    return fmt::format("rank{} {}", dependencies.place(vertex).rank, to_string(slot_at(vertex)));
  };
  std::string message = "the order is a cycle: ";
  for (std::size_t k = 0; k < cycle.size(); ++k) {
    const Vertex next = cycle[(k + 1) % cycle.size()].vertex;
    message += fmt::format("{}{} {} {}", k == 0 ? "" : "; ", named(cycle[k].vertex),
                           explanation(cycle[k].reason), named(next));
  }
  const auto [rank, position] = dependencies.place(cycle.front().vertex);
  out.push_back({.rule = "deadlock",
                 .rank = rank,
                 .index = position,
                 .op = slot_at(cycle.front().vertex).first,
                 .message = std::move(message)});
}

}  // namespace counterflow::rules
