#include "scheduler/graph/digraph.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <utility>
#include <vector>

#include "tests/support/random_problems.h"

namespace counterflow {
namespace {

using testing::draw;
using Edges = std::vector<std::pair<Vertex, Vertex>>;

Digraph graph_of(Vertex vertices, const Edges& edges) {
  DigraphBuilder builder;
  builder.reserve(edges.size());
  for (const auto& [from, to] : edges) builder.add(from, to, Reason::order);
  return std::move(builder).build(vertices);
}

// Reachability by repeated relaxation: slow, and another way than Kahn's.
bool has_cycle(Vertex vertices, const Edges& edges) {
  std::vector<std::vector<bool>> reach(vertices, std::vector<bool>(vertices));
  for (const auto& [from, to] : edges) reach[from][to] = true;
  for (Vertex via = 0; via < vertices; ++via) {
    for (Vertex a = 0; a < vertices; ++a) {
      for (Vertex b = 0; b < vertices; ++b) {
        if (reach[a][via] && reach[via][b]) reach[a][b] = true;
      }
    }
  }
  for (Vertex v = 0; v < vertices; ++v) {
    if (reach[v][v]) return true;
  }
  return false;
}

TEST(TopologicalOrder, PutsEveryVertexAfterWhatItDependsOn) {
  EXPECT_EQ(topological_order(graph_of(4, {{3, 1}, {1, 0}, {3, 2}, {2, 0}})),
            (std::vector<Vertex>{3, 1, 2, 0}));
}

TEST(TopologicalOrder, OfNothingIsNothing) {
  EXPECT_TRUE(topological_order(graph_of(0, {})).empty());
  EXPECT_TRUE(find_cycle(graph_of(0, {})).empty());
}

TEST(TopologicalOrder, LeavesOutTheCycleAndWhatIsBehindIt) {
  // 0 -> (1 <-> 2) -> 3, and 4 apart.
  EXPECT_EQ(topological_order(graph_of(5, {{0, 1}, {1, 2}, {2, 1}, {2, 3}})),
            (std::vector<Vertex>{0, 4}));
}

TEST(FindCycle, KeepsTheReasonOfEachStep) {
  DigraphBuilder builder;
  builder.add(0, 1, Reason::stream);
  builder.add(1, 2, Reason::peer);
  builder.add(2, 0, Reason::event);
  const std::vector<CycleStep> cycle = find_cycle(std::move(builder).build(3));
  ASSERT_EQ(cycle.size(), 3U);
  const std::vector<Reason> reason_from = {Reason::stream, Reason::peer, Reason::event};
  for (std::size_t k = 0; k < 3; ++k) {
    EXPECT_EQ(cycle[(k + 1) % 3].vertex, (cycle[k].vertex + 1) % 3);
    EXPECT_EQ(cycle[k].reason, reason_from[cycle[k].vertex]);
  }
}

TEST(FindCycle, FindsAVertexThatWaitsForItself) {
  const std::vector<CycleStep> cycle = find_cycle(graph_of(3, {{0, 1}, {1, 1}, {1, 2}}));
  ASSERT_EQ(cycle.size(), 1U);
  EXPECT_EQ(cycle[0].vertex, 1U);
}

TEST(FindCycle, TakesTheShortWayRound) {
  // A ring of six with a chord that closes a cycle of two wherever the search begins.
  Edges edges;
  for (Vertex v = 0; v < 6; ++v) {
    edges.emplace_back(v, (v + 1) % 6);
    edges.emplace_back((v + 1) % 6, v);
  }
  EXPECT_EQ(find_cycle(graph_of(6, edges)).size(), 2U);
}

TEST(FindCycle, AgreesWithReachabilityOnRandomGraphs) {
  std::mt19937_64 random(11);
  int cyclic = 0;
  for (int round = 0; round < 500; ++round) {
    const auto vertices = static_cast<Vertex>(draw(random, 1, 9));
    Edges edges;
    for (auto count = draw(random, 0, 14); count > 0; --count) {
      edges.emplace_back(static_cast<Vertex>(draw(random, 0, vertices - 1)),
                         static_cast<Vertex>(draw(random, 0, vertices - 1)));
    }
    const Digraph graph = graph_of(vertices, edges);
    const std::vector<Vertex> order = topological_order(graph);
    const std::vector<CycleStep> cycle = find_cycle(graph);
    ASSERT_EQ(cycle.empty(), !has_cycle(vertices, edges));
    ASSERT_EQ(cycle.empty(), order.size() == vertices);
    cyclic += cycle.empty() ? 0 : 1;
    const std::set<std::pair<Vertex, Vertex>> known(edges.begin(), edges.end());
    for (std::size_t k = 0; k < cycle.size(); ++k) {
      ASSERT_TRUE(known.contains({cycle[k].vertex, cycle[(k + 1) % cycle.size()].vertex}));
    }
    std::vector<std::size_t> place(vertices, vertices);
    for (std::size_t k = 0; k < order.size(); ++k) place[order[k]] = k;
    for (const auto& [from, to] : edges) {
      if (place[to] == vertices) continue;
      ASSERT_LT(place[from], place[to]);
    }
  }
  EXPECT_GT(cyclic, 100);
  EXPECT_LT(cyclic, 400);
}

}  // namespace
}  // namespace counterflow
