#include "scheduler/graph/digraph.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <utility>

namespace counterflow {
namespace {

constexpr Vertex kNoVertex = std::numeric_limits<Vertex>::max();

std::vector<std::uint32_t> in_degrees(const Digraph& graph) {
  std::vector<std::uint32_t> degrees(num_vertices(graph));
  for (Vertex v = 0; v < num_vertices(graph); ++v) {
    for (auto [edge, end] = out_edges(v, graph); edge != end; ++edge) {
      ++degrees[target(*edge, graph)];
    }
  }
  return degrees;
}

// Kahn's algorithm; `degrees` is left at the number of unmet dependencies of each vertex.
std::vector<Vertex> peel(const Digraph& graph, std::vector<std::uint32_t>& degrees) {
  std::vector<Vertex> order;
  order.reserve(num_vertices(graph));
  for (Vertex v = 0; v < num_vertices(graph); ++v) {
    if (degrees[v] == 0) order.push_back(v);
  }
  for (std::size_t next = 0; next < order.size(); ++next) {
    for (auto [edge, end] = out_edges(order[next], graph); edge != end; ++edge) {
      const Vertex v = target(*edge, graph);
      if (--degrees[v] == 0) order.push_back(v);
    }
  }
  return order;
}

// The shortest cycle through `start`, by breadth-first search among vertices that are `left`.
std::vector<CycleStep> shortest_cycle(const Digraph& graph, Vertex start,
                                      const std::vector<std::uint32_t>& left) {
  std::vector<CycleStep> parent(num_vertices(graph), {kNoVertex, Reason::order});
  std::deque<Vertex> frontier{start};
  while (!frontier.empty()) {
    const Vertex u = frontier.front();
    frontier.pop_front();
    for (auto [edge, end] = out_edges(u, graph); edge != end; ++edge) {
      const Vertex v = target(*edge, graph);
      if (left[v] == 0 || parent[v].vertex != kNoVertex) continue;
      parent[v] = {u, graph[*edge].reason};
      if (v != start) {
        frontier.push_back(v);
        continue;
      }
      std::vector<CycleStep> cycle;
      for (Vertex at = start; cycle.empty() || at != start; at = parent[at].vertex) {
        cycle.push_back(parent[at]);
      }
      std::reverse(cycle.begin(), cycle.end());
      return cycle;
    }
  }
  return {};
}

}  // namespace

void DigraphBuilder::reserve(std::size_t edges) {
  edges_.reserve(edges);
  reasons_.reserve(edges);
}

void DigraphBuilder::add(Vertex from, Vertex to, Reason reason) {
  edges_.emplace_back(from, to);
  reasons_.push_back({reason});
}

Digraph DigraphBuilder::build(Vertex vertices) && {
  return {boost::edges_are_unsorted_multi_pass, edges_.begin(), edges_.end(), reasons_.begin(),
          vertices};
}

std::vector<Vertex> topological_order(const Digraph& graph) {
  auto degrees = in_degrees(graph);
  return peel(graph, degrees);
}

std::vector<CycleStep> find_cycle(const Digraph& graph) {
  auto left = in_degrees(graph);
  if (peel(graph, left).size() == num_vertices(graph)) return {};
  // Every vertex left has a predecessor that is left, so walking back must close a cycle.
  std::vector<Vertex> predecessor(num_vertices(graph), kNoVertex);
  Vertex at = kNoVertex;
  for (Vertex u = 0; u < num_vertices(graph); ++u) {
    if (left[u] == 0) continue;
    for (auto [edge, end] = out_edges(u, graph); edge != end; ++edge) {
      const Vertex v = target(*edge, graph);
      if (left[v] == 0) continue;
      predecessor[v] = u;
      if (at == kNoVertex) at = v;
    }
  }
  std::vector<std::uint8_t> seen(num_vertices(graph));
  while (seen[at] == 0) {
    seen[at] = 1;
    at = predecessor[at];
  }
  return shortest_cycle(graph, at, left);
}

}  // namespace counterflow
