#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "scheduler/ir/units.h"

namespace counterflow {

// Who feeds whom: an edge a -> b sends the output of F(a) to F(b) and the input gradient of b back
// to a. A chain unless said; skip links, encoder-decoder and several encoders are other graphs.
// Edges always go to a higher stage number, so stage order is a topological order.
class StageGraph {
 public:
  using Edge = std::pair<Stage, Stage>;

  StageGraph() = default;
  [[nodiscard]] static StageGraph chain(int stages);
  // Throws std::invalid_argument for an edge out of range, not ascending, or given twice.
  StageGraph(int stages, std::vector<Edge> edges);

  [[nodiscard]] int stages() const { return static_cast<int>(predecessors_.size()); }
  [[nodiscard]] std::span<const Stage> predecessors(Stage stage) const {
    return predecessors_[static_cast<std::size_t>(stage)];
  }
  [[nodiscard]] std::span<const Stage> successors(Stage stage) const {
    return successors_[static_cast<std::size_t>(stage)];
  }
  [[nodiscard]] bool has_edge(Stage from, Stage to) const;

 private:
  std::vector<std::vector<Stage>> predecessors_;
  std::vector<std::vector<Stage>> successors_;
};

}  // namespace counterflow
