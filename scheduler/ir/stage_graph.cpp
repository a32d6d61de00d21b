#include "scheduler/ir/stage_graph.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace counterflow {
namespace {

std::string text(StageGraph::Edge edge) {
  return "[" + std::to_string(edge.first) + ", " + std::to_string(edge.second) + "]";
}

}  // namespace

StageGraph StageGraph::chain(int stages) {
  std::vector<Edge> edges;
  for (Stage stage = 0; stage + 1 < stages; ++stage) edges.emplace_back(stage, stage + 1);
  return {stages, std::move(edges)};
}

StageGraph::StageGraph(int stages, std::vector<Edge> edges)
    : predecessors_(static_cast<std::size_t>(stages)),
      successors_(static_cast<std::size_t>(stages)) {
  for (const Edge& edge : edges) {
    const auto [from, to] = edge;
    if (from < 0 || to < 0 || from >= stages || to >= stages) {
      throw std::invalid_argument("edge " + text(edge) + " names a stage outside 0.." +
                                  std::to_string(stages - 1));
    }
    if (from >= to) {
      throw std::invalid_argument("edge " + text(edge) +
                                  " does not go to a higher stage; number the stages so that each "
                                  "feeds only higher ones");
    }
    if (has_edge(from, to)) throw std::invalid_argument("edge " + text(edge) + " is given twice");
    predecessors_[static_cast<std::size_t>(to)].push_back(from);
    successors_[static_cast<std::size_t>(from)].push_back(to);
  }
}

bool StageGraph::has_edge(Stage from, Stage to) const {
  return std::ranges::find(successors(from), to) != successors(from).end();
}

}  // namespace counterflow
