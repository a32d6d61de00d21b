#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "scheduler/graph/digraph.h"
#include "scheduler/ir/execution_model.h"
#include "scheduler/ir/program.h"
#include "scheduler/verify/references.h"

namespace counterflow {

// What waits for what in a program. Every instruction has a begin and an end, every collective a
// point at which all its members have begun; nothing is chosen at run time, so the program
// completes for every timing exactly if nothing starves and the graph has no cycle. The program and
// its references must outlive it.
class WaitGraph {
 public:
  // O(instructions).
  WaitGraph(const Program& program, const References& references, Semantics semantics);

  [[nodiscard]] const Digraph& graph() const { return graph_; }
  // Does an instruction wait for what never comes: a transfer or collective without its other end,
  // an event that nothing records?
  [[nodiscard]] bool starves() const { return starves_; }

  struct Place {
    std::size_t rank = 0;
    std::uint32_t index = 0;
    bool is_end = false;
  };
  [[nodiscard]] bool is_meeting(Vertex vertex) const { return vertex >= 2 * size_; }
  // Of a vertex that is no meeting of a collective.
  [[nodiscard]] Place place(Vertex vertex) const;

 private:
  [[nodiscard]] Vertex begin_of(std::size_t rank, std::size_t index) const {
    return static_cast<Vertex>(2 * (bases_[rank] + index));
  }
  [[nodiscard]] Vertex end_of(std::size_t rank, std::size_t index) const {
    return begin_of(rank, index) + 1;
  }
  void add_rank(std::size_t rank, DigraphBuilder& builder);
  void add_peers(std::size_t rank, std::uint32_t index, DigraphBuilder& builder);
  void add_collectives(DigraphBuilder& builder);

  const Program& program_;
  const References& references_;
  Semantics semantics_;
  std::vector<Vertex> bases_;  // [rank] its first instruction, counted over all ranks
  std::size_t size_ = 0;       // instructions
  std::size_t meetings_ = 0;   // of collectives
  bool starves_ = false;
  Digraph graph_;
};

}  // namespace counterflow
