#include "scheduler/search/search.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "scheduler/error.h"
#include "scheduler/graph/evaluate.h"
#include "scheduler/verify/verify.h"
#include "schedules/registry.h"
#include "tests/support/cases.h"
#include "tests/support/orders.h"
#include "tests/support/problems.h"
#include "tests/support/solved_problems.h"

namespace counterflow {
namespace {

// Problems with proven optima: loop, V and bidirectional placements, even and uneven costs, four
// memory limits. The budget is in iterations, so that no clock decides.
TEST(Search, IsWithinOnePercentOfProvenOptima) {
  SearchBudget budget;
  budget.iterations = 20'000;
  for (const testing::SolvedProblem& solved :
       testing::cases(testing::solved_problems(std::string(TEST_DATA) + "/optimal_sample.json"))) {
    const SearchResult found = search(solved.problem, {}, budget);
    EXPECT_EQ(testing::text(verify(solved.problem, found.schedule)), "") << solved.name;
    EXPECT_EQ(Evaluator(solved.problem).makespan(found.schedule), found.makespan) << solved.name;
    EXPECT_GE(found.makespan, solved.bound) << solved.name;
    EXPECT_LE(found.lower_bound, solved.makespan) << solved.name;
    if (solved.makespan != solved.bound) continue;
    EXPECT_LE(found.makespan.count() * 100, solved.makespan.count() * 101) << solved.name;
  }
}

// Per-rank limits of zero bubble: more memory never costs time, and what is too little is said with
// the rank and what it needs.
TEST(Search, MoreMemoryNeverCostsTime) {
  Time before = Time::max();
  for (const std::int64_t limit : {1, 2, 3, 4, 5, 8}) {
    Problem problem =
        testing::uniform_problem(PlacementKind::loop, 4, 1, 8, Time{1}, Time{1}, Time{1});
    problem.limits.bytes.assign(4, Bytes{limit});
    SearchBudget budget;
    budget.iterations = 3'000;
    const SearchResult found = search(problem, {}, budget);
    EXPECT_EQ(testing::text(verify(problem, found.schedule)), "");
    EXPECT_LE(found.makespan, before) << limit;
    before = found.makespan;
    if (limit >= 4) {
      EXPECT_EQ(found.makespan, Time{27});
    }
  }
}

// The time may be over before anything is found.
TEST(Search, FindsAnOrderHoweverLittleTimeThereIs) {
  Problem problem =
      testing::uniform_problem(PlacementKind::v, 8, 2, 128, Time{10}, Time{11}, Time{8}, Time{1});
  problem.limits.activations.assign(8, 4);
  SearchBudget budget;
  budget.time = Time{1};
  const SearchResult found = search(problem, {}, budget);
  EXPECT_EQ(testing::text(verify(problem, found.schedule)), "");
}

// What is fastest is so among all that was looked at, seeds too that there was no time for.
TEST(Search, NothingItHasIsFasterThanTheFastest) {
  const Problem problem =
      testing::uniform_problem(PlacementKind::loop, 4, 1, 8, Time{10}, Time{11}, Time{8}, Time{1});
  const std::vector<Schedule> seeds{generate(*find_family("gpipe"), problem),
                                    generate(*find_family("zb-h1"), problem)};
  SearchBudget budget;
  budget.time = Time{1};
  const SearchResult found = search(problem, seeds, budget, [&](const Schedule& schedule) {
    return Evaluator(problem).makespan(schedule);
  });
  EXPECT_EQ(found.best_makespan, Evaluator(problem).makespan(found.fastest));
  EXPECT_LE(found.best_makespan, found.makespan);
  EXPECT_LE(found.best_makespan, Evaluator(problem).makespan(seeds[1]));
}

TEST(Search, NamesTheRankWhoseMemoryIsTooSmall) {
  Problem problem = testing::uniform_problem(PlacementKind::v, 2, 2, 4, Time{1}, Time{1}, Time{1});
  problem.limits.bytes = {Bytes{2}, Bytes{1}};
  try {
    (void)search(problem, {});
    FAIL() << "found an order";
  } catch (const InfeasibleError& error) {
    EXPECT_NE(std::string(error.what()).find("rank 1 needs 2 B"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace counterflow
