#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "scheduler/graph/evaluate.h"
#include "scheduler/search/alternatives.h"
#include "scheduler/search/expected_costs.h"
#include "scheduler/verify/verify.h"
#include "schedules/registry.h"
#include "simulator/monte_carlo.h"
#include "tests/support/cases.h"
#include "tests/support/orders.h"
#include "tests/support/random_problems.h"

// What a search for an order that stands disturbances must hold to on any problem.
namespace counterflow {
namespace {

using testing::draw;
using testing::RandomProblems;

Jitter random_jitter(std::mt19937_64& random, int ranks) {
  Jitter jitter;
  jitter.seed = random();
  const auto share = [&] { return 0.01 * static_cast<double>(draw(random, 0, 40)); };
  jitter.compute = {static_cast<Distribution>(draw(random, 0, 3)), share()};
  jitter.transfer = {static_cast<Distribution>(draw(random, 0, 3)), share()};
  if (draw(random, 0, 1) == 0) {
    jitter.ranks.push_back({static_cast<Rank>(draw(random, 0, ranks - 1)), 1 + share(), {}});
  }
  if (draw(random, 0, 3) == 0) jitter.stragglers = {share(), 1 + share()};
  return jitter;
}

Scenario random_scenario(std::mt19937_64& random, int ranks) {
  Scenario scenario;
  for (std::int64_t i = draw(random, 0, 2); i > 0; --i) {
    scenario.slowdowns.push_back({Scenario::OneRank{static_cast<Rank>(draw(random, 0, ranks - 1))},
                                  1 + 0.1 * static_cast<double>(draw(random, 0, 20)),
                                  Time{draw(random, 0, 300)},
                                  {}});
  }
  return scenario;
}

TEST(RobustSearch, IsFaultlessAndNeverWorseByItsGoalThanASeed) {
  RandomProblems problems(91);
  std::mt19937_64 random(92);
  int seeded = 0;
  for (int i = 0; i < testing::cases(60); ++i) {
    const auto [family, problem] = problems.next();
    SCOPED_TRACE(std::to_string(i) + " " + std::string(family->name));
    const Jitter jitter = random_jitter(random, problem.ranks());
    const Scenario scenario = random_scenario(random, problem.ranks());
    DisturbedMakespan what;
    what.trials = 12;
    what.seed = jitter.seed;
    if (i % 2 == 0) what.quantile = 0.95;
    const auto goal = makespan_under(problem, ExecutionModel::ideal(), jitter, scenario, what);
    std::vector<Alternative> alternatives;
    if (auto expected = with_expected_costs(problem, jitter, scenario, Time{500})) {
      alternatives.push_back({std::move(*expected), "expected costs"});
    }
    if (auto late = with_late_messages(problem, jitter, 2)) {
      alternatives.push_back({std::move(*late), "late messages"});
    }
    SearchBudget budget;
    budget.iterations = 60;
    const std::vector<Schedule> seeds{generate(*family, problem)};
    const SearchResult found = search_alternatives(problem, alternatives, seeds, budget, goal, 2);
    EXPECT_EQ(testing::text(verify(problem, found.schedule)), "");
    EXPECT_EQ(Evaluator(problem).makespan(found.schedule), found.makespan);
    EXPECT_EQ(goal(found.schedule), found.objective);
    EXPECT_LE(found.objective, goal(found.fastest));
    EXPECT_EQ(Evaluator(problem).makespan(found.fastest), found.best_makespan);
    EXPECT_EQ(found.best_makespan, search(problem, seeds, budget).makespan);
    EXPECT_GE(found.makespan, found.lower_bound);
    if (!verify(problem, seeds[0]).empty()) continue;
    ++seeded;
    EXPECT_LE(found.objective, goal(seeds[0]));
  }
  EXPECT_GT(seeded, testing::cases(30));
}

}  // namespace
}  // namespace counterflow
