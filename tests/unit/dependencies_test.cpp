#include "scheduler/graph/dependencies.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "scheduler/graph/evaluate.h"
#include "tests/support/orders.h"
#include "tests/support/problems.h"

namespace counterflow {
namespace {

using testing::family_problem;
using testing::order;
using testing::uniform_problem;

Problem chain(int p, int m, Time latency = Time{0}) {
  return uniform_problem(PlacementKind::loop, p, 1, m, Time{1}, Time{2}, Time{3}, latency);
}

using Edge = std::tuple<std::string, std::string, Reason>;

std::set<Edge> edges_of(const Dependencies& dependencies, const Schedule& schedule) {
  std::set<Edge> edges;
  const auto name = [&](Vertex v) {
    const auto [rank, position] = dependencies.place(v);
    return to_string(schedule.ranks[static_cast<std::size_t>(rank)][position]);
  };
  const Digraph& graph = dependencies.graph();
  for (Vertex u = 0; u < num_vertices(graph); ++u) {
    for (auto [e, end] = out_edges(u, graph); e != end; ++e) {
      edges.emplace(name(u), name(target(*e, graph)), graph[*e].reason);
    }
  }
  return edges;
}

TEST(Dependencies, NameEveryReason) {
  const Schedule schedule = order("0F0,0B0\n1F0,1I0,1W0\n");
  EXPECT_EQ(edges_of(Dependencies(chain(2, 1), schedule), schedule),
            (std::set<Edge>{{"0F0", "0B0", Reason::order},
                            {"0F0", "0B0", Reason::stash},
                            {"0F0", "1F0", Reason::activation},
                            {"1F0", "1I0", Reason::order},
                            {"1F0", "1I0", Reason::stash},
                            {"1I0", "1W0", Reason::order},
                            {"1I0", "1W0", Reason::weight},
                            {"1I0", "0B0", Reason::gradient}}));
}

TEST(Dependencies, OfAPairAreThoseOfBothParts) {
  const Schedule schedule = order("0F0,0F1,0B0,0B1\n1F0,(1F1;1B0)OVERLAP_F_B,1B1\n");
  const auto edges = edges_of(Dependencies(chain(2, 2), schedule), schedule);
  const std::string pair = "(1F1;1B0)OVERLAP_F_B";
  EXPECT_TRUE(edges.contains({"0F1", pair, Reason::activation}));
  EXPECT_TRUE(edges.contains({"1F0", pair, Reason::stash}));
  EXPECT_TRUE(edges.contains({pair, "1B1", Reason::stash}));
  EXPECT_TRUE(edges.contains({pair, "0B0", Reason::gradient}));
}

TEST(Dependencies, OfFrozenStagesHaveNoGradientWhereNoneFlows) {
  Problem problem = chain(2, 1);
  problem.frozen = {1, 0};
  const Schedule schedule = order("0F0\n1F0,1B0\n");
  EXPECT_EQ(edges_of(Dependencies(problem, schedule), schedule),
            (std::set<Edge>{{"0F0", "1F0", Reason::activation},
                            {"1F0", "1B0", Reason::order},
                            {"1F0", "1B0", Reason::stash}}));
}

TEST(Dependencies, TolerateMissingAndRepeatedOps) {
  const Schedule schedule = order("0F0,0F0,0B0\n1B0\n");
  const auto edges = edges_of(Dependencies(chain(2, 1), schedule), schedule);
  EXPECT_TRUE(edges.contains({"1B0", "0B0", Reason::gradient}));
  EXPECT_FALSE(edges.contains({"0F0", "1F0", Reason::activation}));
}

TEST(Dependencies, PlaceIsTheInverseOfVertex) {
  const Schedule schedule = order("0F0,0F1,0B0,0B1\n\n2F0\n");
  const Dependencies dependencies(chain(3, 2), schedule);
  Vertex vertex = 0;
  for (const auto& [rank, length] : std::map<Rank, std::uint32_t>{{0, 4}, {1, 0}, {2, 1}}) {
    for (std::uint32_t position = 0; position < length; ++position, ++vertex) {
      EXPECT_EQ(dependencies.vertex(rank, position), vertex);
      EXPECT_EQ(dependencies.place(vertex).rank, rank);
      EXPECT_EQ(dependencies.place(vertex).position, position);
    }
  }
}

std::string path_text(const Dependencies& dependencies, const Schedule& schedule,
                      const CriticalPath& critical) {
  std::string text;
  for (const Vertex v : critical.path) {
    const auto [rank, position] = dependencies.place(v);
    text += to_string(schedule.ranks[static_cast<std::size_t>(rank)][position]) + " ";
  }
  return text;
}

TEST(CriticalPath, OfOneMicrobatchIsItsWholeWay) {
  // F 1, B 5, a hop 10: 1 + 10 + 1 + 5 + 10 + 5.
  const Problem problem = chain(2, 1, Time{10});
  const Schedule schedule = order("0F0,0B0\n1F0,1B0\n");
  const Dependencies dependencies(problem, schedule);
  const CriticalPath critical = critical_path(problem, schedule, dependencies);
  EXPECT_EQ(path_text(dependencies, schedule, critical), "0F0 1F0 1B0 0B0 ");
  EXPECT_EQ(critical.begin, (std::vector<Time>{Time{0}, Time{27}, Time{11}, Time{12}}));
  EXPECT_EQ(critical.slack, (std::vector<Time>(4, Time{0})));
}

TEST(CriticalPath, GivesSlackToWhatCanWait) {
  // Rank 1: F 0..1 begins at 1, I 2..4, W 4..7; rank 0: I 4..6, W 6..9. Rank 1's W may end at 9.
  const Problem problem = chain(2, 1);
  const Schedule schedule = order("0F0,0I0,0W0\n1F0,1I0,1W0\n");
  const Dependencies dependencies(problem, schedule);
  const CriticalPath critical = critical_path(problem, schedule, dependencies);
  EXPECT_EQ(path_text(dependencies, schedule, critical), "0F0 1F0 1I0 0I0 0W0 ");
  EXPECT_EQ(critical.slack[dependencies.vertex(1, 2)], Time{2});
  for (const Vertex v : critical.path) EXPECT_EQ(critical.slack[v], Time{0});
}

TEST(CriticalPath, OfNothingIsEmpty) {
  const Problem problem = chain(2, 1);
  const Schedule schedule{"nothing", {{}, {}}};
  const Dependencies dependencies(problem, schedule);
  EXPECT_TRUE(critical_path(problem, schedule, dependencies).path.empty());
}

// The makespan when one slot may not begin before `release`: relaxed until nothing changes.
Time makespan_with(const Problem& problem, const Schedule& schedule,
                   const Dependencies& dependencies, Vertex held, Time release) {
  const Digraph& graph = dependencies.graph();
  const auto rank_of = [&](Vertex v) { return dependencies.place(v).rank; };
  const auto duration = [&](Vertex v) {
    const auto [rank, position] = dependencies.place(v);
    return problem.duration(schedule.ranks[static_cast<std::size_t>(rank)][position]);
  };
  std::vector<Time> begin(num_vertices(graph), Time{0});
  begin[held] = release;
  for (bool changed = true; changed;) {
    changed = false;
    for (Vertex u = 0; u < num_vertices(graph); ++u) {
      for (auto [e, end] = out_edges(u, graph); e != end; ++e) {
        const Vertex v = target(*e, graph);
        const Time at = begin[u] + duration(u) + problem.links.latency(rank_of(u), rank_of(v));
        if (at <= begin[v]) continue;
        begin[v] = at;
        changed = true;
      }
    }
  }
  Time last{0};
  for (Vertex v = 0; v < num_vertices(graph); ++v) last = std::max(last, begin[v] + duration(v));
  return last;
}

TEST(CriticalPath, SlackIsHowLongEachSlotMayWait) {
  for (const char* name : {"1f1b", "zb-h1", "interleaved-1f1b", "zbv", "dualpipe"}) {
    SCOPED_TRACE(name);
    const Family& family = *find_family(name);
    const int m = family.name == "dualpipe" ? 4 : 3;
    const Problem problem = uniform_problem(family.placement, 2, std::max(family.default_chunks, 1),
                                            m, Time{3}, Time{4}, Time{2}, Time{1});
    const Schedule schedule = generate(family, problem);
    const Dependencies dependencies(problem, schedule);
    const CriticalPath critical = critical_path(problem, schedule, dependencies);
    const Evaluation evaluation = Evaluator(problem).evaluate(schedule);
    for (Vertex v = 0; v < num_vertices(dependencies.graph()); ++v) {
      const auto [rank, position] = dependencies.place(v);
      ASSERT_EQ(critical.begin[v], evaluation.begins[static_cast<std::size_t>(rank)][position]);
      const Time latest = critical.begin[v] + critical.slack[v];
      EXPECT_EQ(makespan_with(problem, schedule, dependencies, v, latest), evaluation.makespan);
      EXPECT_EQ(makespan_with(problem, schedule, dependencies, v, latest + Time{1}),
                evaluation.makespan + Time{1});
    }
    for (const Vertex v : critical.path) EXPECT_EQ(critical.slack[v], Time{0});
  }
}

TEST(CriticalPath, EachSlotBeginsWhenTheOneBeforeItLetsItGo) {
  const Problem problem = family_problem(*find_family("zb-h1"), 4, 1, 8, {3, 4, 2, 0.5});
  const Schedule schedule = generate(*find_family("zb-h1"), problem);
  const Dependencies dependencies(problem, schedule);
  const CriticalPath critical = critical_path(problem, schedule, dependencies);
  ASSERT_FALSE(critical.path.empty());
  EXPECT_EQ(critical.begin[critical.path.front()], Time{0});
  for (std::size_t k = 1; k < critical.path.size(); ++k) {
    const Vertex before = critical.path[k - 1];
    const Vertex now = critical.path[k];
    const auto [rank, position] = dependencies.place(before);
    const Time end = critical.begin[before] +
                     problem.duration(schedule.ranks[static_cast<std::size_t>(rank)][position]);
    EXPECT_EQ(critical.begin[now], end + problem.links.latency(rank, dependencies.place(now).rank));
  }
}

}  // namespace
}  // namespace counterflow
