#include "tests/support/solved_problems.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "scheduler/bounds/lower_bound.h"
#include "scheduler/graph/evaluate.h"
#include "scheduler/search/exact.h"
#include "scheduler/verify/verify.h"
#include "tests/support/cases.h"

// Problems that an exact solver solved, or tried to: nothing proven here may contradict it.
namespace counterflow {
namespace {

using testing::cases;
using testing::solved_problems;
using testing::SolvedProblem;

const std::vector<SolvedProblem>& three_hundred() {
  static const auto all = solved_problems(std::string(TEST_DATA) + "/solved_problems.json");
  return all;
}
const std::vector<SolvedProblem>& fresh() {
  static const auto some = cases(three_hundred());
  return some;
}
std::vector<SolvedProblem> sample() {
  return cases(solved_problems(std::string(TEST_DATA) + "/optimal_sample.json"));
}

TEST(SolvedProblems, AreThreeHundredOverFourPlacements) {
  std::map<PlacementKind, int> kinds;
  int fused = 0;
  for (const SolvedProblem& solved : three_hundred()) {
    ++kinds[solved.problem.placement.kind()];
    fused += solved.problem.split_backward == SplitBackward::full ? 1 : 0;
    EXPECT_LE(solved.witness.size(), 160U) << solved.name;
  }
  EXPECT_EQ(three_hundred().size(), 300U);
  EXPECT_EQ(kinds[PlacementKind::loop], 150);
  EXPECT_EQ(kinds[PlacementKind::v], 75);
  EXPECT_EQ(kinds[PlacementKind::bidirectional], 75);
  EXPECT_GE(fused, 70);
}

TEST(SolvedProblems, WitnessesKeepTheLimitsAndTakeTheirMakespan) {
  for (const SolvedProblem& solved : fresh()) {
    EXPECT_TRUE(verify(solved.problem, solved.witness).empty()) << solved.name;
    EXPECT_EQ(Evaluator(solved.problem).makespan(solved.witness), solved.makespan) << solved.name;
  }
}

TEST(SolvedProblems, NoBoundIsAboveAMakespanThatExists) {
  std::map<std::string, int> arguments;
  int met = 0;
  double gaps = 0;
  double widest = 0;
  for (const SolvedProblem& solved : fresh()) {
    const LowerBound bound = best_lower_bound(solved.problem, BoundEffort::full);
    EXPECT_LE(lower_bound(solved.problem), bound.value) << solved.name;
    ASSERT_LE(bound.value, solved.makespan) << solved.name << " " << bound.argument;
    const double gap = static_cast<double>((solved.makespan - bound.value).count()) /
                       static_cast<double>(solved.makespan.count());
    met += bound.value == solved.makespan ? 1 : 0;
    gaps += gap;
    widest = std::max(widest, gap);
    ++arguments[std::string(bound.argument)];
  }
  std::string by;
  for (const auto& [argument, count] : arguments) by += fmt::format(" {} {}", argument, count);
  const double mean = gaps / static_cast<double>(fresh().size());
  fmt::print("bounds: {} of {} at the best makespan, mean gap {:.2f} %, widest {:.1f} %; by{}\n",
             met, fresh().size(), 100 * mean, 100 * widest, by);
  EXPECT_GE(met, cases(230));
  EXPECT_LT(mean, 0.011);
}

TEST(SolvedProblems, NoBoundIsAboveTheSamplesMakespans) {
  for (const SolvedProblem& solved : sample()) {
    EXPECT_LE(lower_bound(solved.problem, BoundEffort::full), solved.makespan) << solved.name;
  }
}

// The exact solver against what another one proved.
TEST(SolvedProblems, AreSolvedAlike) {
  int proven = 0;
  for (const SolvedProblem& solved : fresh()) {
    const ExactResult result = solve_exactly(solved.problem, &solved.witness, {.nodes = 100});
    ASSERT_GE(result.makespan, solved.bound) << solved.name;
    ASSERT_LE(result.makespan, solved.makespan) << solved.name;
    ASSERT_LE(result.bound, result.makespan) << solved.name;
    proven += result.optimal() ? 1 : 0;
  }
  fmt::print("exact: {} of {} proven within 100 nodes\n", proven, fresh().size());
  EXPECT_GE(proven, cases(240));
}

// Without an order to start from.
TEST(SolvedProblems, AreSolvedFromNothing) {
  int near = 0;
  for (const SolvedProblem& solved : fresh()) {
    const ExactResult result = solve_exactly(solved.problem, nullptr, {.nodes = 500});
    ASSERT_GE(result.makespan, solved.bound) << solved.name;
    ASSERT_TRUE(verify(solved.problem, result.schedule).empty()) << solved.name;
    near += result.makespan.count() * 100 <= solved.makespan.count() * 101 ? 1 : 0;
  }
  fmt::print("exact: {} of {} within 1 % of the best, from nothing in 500 nodes\n", near,
             fresh().size());
  EXPECT_GE(near, cases(240));
}

}  // namespace
}  // namespace counterflow
