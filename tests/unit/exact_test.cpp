#include "scheduler/search/exact.h"

#include <gtest/gtest.h>

#include <string>

#include "scheduler/bounds/lower_bound.h"
#include "scheduler/graph/evaluate.h"
#include "scheduler/verify/verify.h"
#include "schedules/registry.h"
#include "tests/support/brute_force.h"
#include "tests/support/cases.h"
#include "tests/support/problems.h"
#include "tests/support/tiny_problems.h"

namespace counterflow {
namespace {

using testing::BruteForce;
using testing::cases;
using testing::describe;
using testing::TinyProblems;
using testing::uniform_problem;

constexpr ExactBudget kPlenty{.nodes = 1'000'000};

// The best of all orders, found and proven, or proven not to exist.
void expect_optimum(const Problem& problem) {
  const ExactResult result = solve_exactly(problem, nullptr, kPlenty);
  if (result.makespan < Time{0}) {
    EXPECT_FALSE(BruteForce(problem).beats(Time{10'000})) << describe(problem);
    return;
  }
  EXPECT_TRUE(result.optimal()) << describe(problem);
  EXPECT_TRUE(verify(problem, result.schedule).empty()) << describe(problem);
  EXPECT_EQ(Evaluator(problem).makespan(result.schedule), result.makespan);
  EXPECT_TRUE(BruteForce(problem).beats(result.makespan + Time{1})) << describe(problem);
  EXPECT_FALSE(BruteForce(problem).beats(result.makespan)) << describe(problem);
}

TEST(Exact, IsTheBestOfAllOrdersOfTinyProblems) {
  TinyProblems problems(21);
  for (int round = 0; round < cases(300); ++round) {
    expect_optimum(problems.next({.frozen = round % 3 == 0, .skip_links = round % 4 == 0}));
  }
}

TEST(Exact, IsTheBestOfAllOrdersWithinMemoryLimits) {
  TinyProblems problems(22);
  for (int round = 0; round < cases(600); ++round) {
    expect_optimum(
        problems.next({.frozen = round % 5 == 0, .skip_links = round % 4 == 0, .memory = true}));
  }
}

TEST(Exact, ProvesAnIncumbentThatIsOptimal) {
  const Family& family = *find_family("zb-h1");
  const Problem problem =
      uniform_problem(PlacementKind::loop, 4, 1, 8, Time{10}, Time{10}, Time{10});
  const Schedule incumbent = generate(family, problem);
  const ExactResult result = solve_exactly(problem, &incumbent, {.nodes = 1});
  EXPECT_TRUE(result.optimal());
  EXPECT_EQ(result.schedule.ranks, incumbent.ranks);
}

TEST(Exact, NeverReturnsMoreThanTheIncumbent) {
  const Family& family = *find_family("1f1b");
  Problem problem = uniform_problem(PlacementKind::loop, 4, 1, 8, Time{10}, Time{12}, Time{7});
  problem.limits.activations.assign(4, 4);
  const Schedule incumbent = generate(family, problem);
  const Time before = Evaluator(problem).makespan(incumbent);
  for (const std::int64_t nodes : {0, 1, 10, 100, 1000, 10'000}) {
    const ExactResult result = solve_exactly(problem, &incumbent, {.nodes = nodes});
    EXPECT_LE(result.makespan, before) << nodes;
    EXPECT_LE(result.bound, result.makespan) << nodes;
    EXPECT_LE(result.nodes, nodes);
    EXPECT_TRUE(verify(problem, result.schedule).empty()) << nodes;
  }
}

TEST(Exact, IsReproducible) {
  Problem problem = uniform_problem(PlacementKind::v, 3, 2, 5, Time{10}, Time{12}, Time{7});
  problem.limits.activations.assign(3, 4);
  const ExactResult one = solve_exactly(problem, nullptr, {.nodes = 500});
  const ExactResult two = solve_exactly(problem, nullptr, {.nodes = 500});
  EXPECT_EQ(one.schedule.ranks, two.schedule.ranks);
  EXPECT_EQ(one.bound, two.bound);
}

TEST(Exact, LeavesWhatItDoesNotModelToTheIncumbent) {
  const Family& family = *find_family("1f1b");
  Problem problem = uniform_problem(PlacementKind::loop, 2, 1, 4, Time{10}, Time{12}, Time{7});
  problem.links = Links(Time{1}, 1e9);
  const Schedule incumbent = generate(family, problem);
  EXPECT_FALSE(is_exactly_solvable(problem));
  const ExactResult result = solve_exactly(problem, &incumbent, kPlenty);
  EXPECT_EQ(result.schedule.ranks, incumbent.ranks);
  EXPECT_EQ(result.bound, lower_bound(problem, BoundEffort::full));
}

}  // namespace
}  // namespace counterflow
