#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/graph/digraph.h"
#include "scheduler/ir/schedule.h"
#include "scheduler/problem/problem.h"

namespace counterflow {

// The dependency graph of a schedule: one vertex a slot, an edge for everything a slot waits for,
// with its reason.
class Dependencies {
 public:
  struct Place {
    Rank rank = 0;
    std::uint32_t position = 0;
  };

  // Ops must be within the problem's ranges; missing or repeated ones are tolerated (the first one
  // counts). O(ops).
  Dependencies(const Problem& problem, const Schedule& schedule);

  [[nodiscard]] const Digraph& graph() const { return graph_; }
  [[nodiscard]] Vertex vertex(Rank rank, std::uint32_t position) const {
    return bases_[static_cast<std::size_t>(rank)] + position;
  }
  [[nodiscard]] Place place(Vertex vertex) const;

 private:
  std::vector<Vertex> bases_;  // [rank] vertex of its first slot, and one past the last rank
  Digraph graph_;
};

// When each slot can begin, how late it may, and the way that decides the makespan.
struct CriticalPath {
  std::vector<Time> begin;   // [vertex] earliest
  std::vector<Time> slack;   // [vertex] how much later it may begin without a longer makespan
  std::vector<Vertex> path;  // first to last; each begins because of the one before it
};

// Latency counts, bandwidth does not. The graph must be acyclic. O(V + E).
[[nodiscard]] CriticalPath critical_path(const Problem& problem, const Schedule& schedule,
                                         const Dependencies& dependencies);

}  // namespace counterflow
