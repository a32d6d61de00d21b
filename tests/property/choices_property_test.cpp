#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "report/report.h"
#include "scheduler/bounds/lower_bound.h"
#include "scheduler/error.h"
#include "scheduler/graph/evaluate.h"
#include "scheduler/passes/compile.h"
#include "scheduler/search/choices.h"
#include "scheduler/search/least_memory.h"
#include "scheduler/search/list_scheduler.h"
#include "scheduler/search/model.h"
#include "scheduler/search/order_evaluator.h"
#include "scheduler/search/order_memory.h"
#include "scheduler/search/priorities.h"
#include "scheduler/search/reverse.h"
#include "scheduler/verify/verify.h"
#include "simulator/simulate.h"
#include "tests/support/brute_force.h"
#include "tests/support/keeping_problems.h"
#include "tests/support/orders.h"
#include "tests/support/random_problems.h"
#include "tests/support/tiny_problems.h"

// Stages that recompute or offload: any choice is carried truthfully by orders, programs and
// simulator, and the choices made are sound.
namespace counterflow {
namespace {

using testing::any_choice;
using testing::draw;
using testing::offer_keeping;
using testing::RandomProblems;

SearchBudget iterations(std::int64_t count) {
  SearchBudget budget;
  budget.iterations = count;
  return budget;
}

// Limits in bytes: from what one microbatch needs under the problem's choice to some more.
void limit_bytes(Problem& problem, std::mt19937_64& random) {
  problem.limits = {};
  for (const SearchModel::Amount& least : least_memory(SearchModel(problem))) {
    problem.limits.bytes.push_back(Bytes{least[0] + draw(random, 0, 2) * draw(random, 0, 40)});
  }
}

// The most any rank holds in a simulated run, beyond its limit; 0 where all keep to it.
std::int64_t excess(const Problem& problem, const Timeline& timeline) {
  std::int64_t most = 0;
  for (std::size_t rank = 0; rank < timeline.ranks.size(); ++rank) {
    for (const MemorySample& sample : timeline.ranks[rank].memory) {
      most = std::max(most, (sample.held - problem.limits.bytes[rank]).value);
    }
  }
  return most;
}

TEST(Keeping, FamiliesRunWithAnyChoiceAndTheSimulatorFindsWhatTheEvaluatorDoes) {
  RandomProblems problems(71);
  std::mt19937_64 random(72);
  int restoring = 0;
  for (int i = 0; i < 120; ++i) {
    auto [family, problem] = problems.next();
    offer_keeping(problem, random, 12);
    problem = any_choice(std::move(problem), random);
    SCOPED_TRACE(std::to_string(i) + " " + std::string(family->name));
    const Schedule schedule = generate(*family, problem);
    ASSERT_EQ(testing::text(verify(problem, schedule)), "");
    const Program program = compile(problem, schedule);
    ASSERT_EQ(testing::text(verify(problem, program, kAllSemantics).diagnostics), "");
    const Simulation simulation = simulate(program, problem.links, ExecutionModel{});
    ASSERT_TRUE(simulation.diagnostics.empty());
    const Report report = measure(program, simulation.timeline);
    EXPECT_EQ(report.makespan, Evaluator(problem).makespan(schedule));
    EXPECT_GE(report.makespan, lower_bound(problem));
    EXPECT_EQ(with_keeping_of(with_keeping(problem, {}), schedule).keeping.size(),
              problem.keeping.size());
    for (Stage s = 0; s < problem.stages(); ++s) {
      const bool recomputes = std::ranges::count(report.recompute, s) > 0;
      const bool offloads = std::ranges::count(report.offload, s) > 0;
      EXPECT_EQ(recomputes, problem.keeping_of(s).kind == KeepingKind::recompute);
      EXPECT_EQ(offloads, problem.keeping_of(s).kind == KeepingKind::offload);
      restoring += recomputes || offloads ? 1 : 0;
    }
  }
  EXPECT_GT(restoring, 120);  // more than one a problem
}

TEST(Keeping, ModelsTimeAndHoldWhatTheirSchedulesDo) {
  RandomProblems problems(73);
  std::mt19937_64 random(74);
  for (int i = 0; i < 150; ++i) {
    auto [family, problem] = problems.next();
    offer_keeping(problem, random, 12);
    problem = any_choice(std::move(problem), random);
    SCOPED_TRACE(std::to_string(i) + " " + std::string(family->name));
    const Schedule schedule = generate(*family, problem);
    const SearchModel model(problem);
    const SearchModel::Orders orders = model.orders(schedule);
    const Schedule again = model.schedule(orders);
    EXPECT_EQ(testing::text(verify(problem, again)), "");
    EXPECT_EQ(model.orders(again), orders);
    const std::int64_t found = OrderEvaluator(model).evaluate(orders);
    const std::int64_t truth = Evaluator(problem).makespan(again).count();
    // With factors a message counts as late as the microbatch with the least to move has it, and a
    // pair as if all of it were there at once.
    if (model.limited_links) continue;  // a message queues when all of its op has ended
    if (!problem.costs.uniform() || model.has_pairs) {
      EXPECT_GE(found, truth);
      continue;
    }
    EXPECT_EQ(found, truth);
    const SearchModel backward = model.reversed();
    EXPECT_EQ(OrderEvaluator(backward).evaluate(reversed(model, orders)), found);
  }
}

TEST(Keeping, ListSchedulingNeverRunsIntoADeadEnd) {
  RandomProblems problems(75);
  std::mt19937_64 random(76);
  int restoring = 0;
  for (int i = 0; i < 120; ++i) {
    auto [family, problem] = problems.next();
    offer_keeping(problem, random, 12);
    problem = any_choice(std::move(problem), random);
    if (problem.keeping.empty()) continue;
    limit_bytes(problem, random);
    const SearchModel forward(problem);
    if (!forward.chain) continue;
    ++restoring;
    const SearchModel backward = forward.reversed();
    for (const SearchModel* model : {&forward, &backward}) {
      ListScheduler scheduler(*model);
      const std::vector<PriorityRule> rules = priority_grid(forward, 5);
      for (std::size_t each = 0; each < 20; ++each) {
        EXPECT_GE(scheduler.run(list_rule(*model, rules[each])), 0)
            << i << " " << family->name << " rule " << each;
        EXPECT_TRUE(OrderMemory(*model).fits(scheduler.orders()));
      }
    }
  }
  EXPECT_GT(restoring, 20);
}

TEST(Choices, AreFaultlessNeverWorseThanKeepingAllAndKeepToTheLimits) {
  RandomProblems problems(77);
  std::mt19937_64 random(78);
  int better = 0;
  for (int i = 0; i < 40; ++i) {
    auto [family, problem] = problems.next();
    if (!problem.phases.empty()) continue;
    offer_keeping(problem, random, 6);
    limit_bytes(problem, random);  // all keep all
    SCOPED_TRACE(std::to_string(i) + " " + std::string(family->name));
    const ChosenSearch found = search_choices(problem, {}, iterations(200));
    EXPECT_EQ(testing::text(verify(found.problem, found.result.schedule)), "");
    EXPECT_EQ(Evaluator(found.problem).makespan(found.result.schedule), found.result.makespan);
    EXPECT_GE(found.result.makespan, found.result.lower_bound);
    EXPECT_GE(found.result.makespan, lower_bound_of_choices(problem, BoundEffort::full).value);
    const SearchResult kept = search(with_all_kept(problem), {}, iterations(100));
    EXPECT_LE(found.result.makespan, kept.makespan);
    better += found.result.makespan < kept.makespan ? 1 : 0;
    const Program program = compile(found.problem, found.result.schedule);
    const Simulation simulation = simulate(program, problem.links, ExecutionModel{});
    ASSERT_TRUE(simulation.diagnostics.empty());
    EXPECT_EQ(measure(program, simulation.timeline).makespan, found.result.makespan);
    EXPECT_EQ(excess(problem, simulation.timeline), 0);
  }
  EXPECT_GT(better, 0);  // not always the search with everything kept
}

TEST(Choices, FitWhereOnlyKeepingLessDoesAndNowhereElse) {
  RandomProblems problems(79);
  std::mt19937_64 random(80);
  int saved = 0;
  int hopeless = 0;
  for (int i = 0; i < 60; ++i) {
    auto [family, problem] = problems.next();
    offer_keeping(problem, random, 6);
    Problem least = with_least_kept(problem);
    limit_bytes(least, random);
    problem.limits = least.limits;
    const auto short_of = draw(random, 0, 3) == 0 ? 1 : 0;
    problem.limits.bytes[0] = problem.limits.bytes[0] - Bytes{short_of};
    least.limits = problem.limits;
    SCOPED_TRACE(std::to_string(i) + " " + std::string(family->name));
    if (!memory_shortages(SearchModel(least)).empty()) {
      ++hopeless;
      EXPECT_THROW((void)search_choices(problem, {}, iterations(50)), InfeasibleError);
      continue;
    }
    const ChosenSearch found = search_choices(problem, {}, iterations(50));
    EXPECT_EQ(testing::text(verify(found.problem, found.result.schedule)), "");
    saved += memory_shortages(SearchModel(with_all_kept(problem))).empty() ? 0 : 1;
  }
  EXPECT_GT(saved, 0);  // both happen
  EXPECT_GT(hopeless, 0);
}

// Every choice and every order of tiny problems: OFFLOAD, RECOMPUTE and RELOAD anywhere. A search
// proves nothing, but of so few orders it finds the best nearly always.
TEST(Choices, BoundsHoldAndTinyProblemsAreSolved) {
  testing::TinyProblems problems(81);
  std::mt19937_64 random(82);
  int solved = 0;
  int missed = 0;
  for (int i = 0; i < 160; ++i) {
    Problem problem = problems.next({.memory = true});
    if (problem.forward_only || problem.stages() * problem.microbatches > 4) continue;
    problem.limits.activations.clear();
    if (problem.limits.bytes.empty()) continue;
    offer_keeping(problem, random, 4);
    const Time bound = lower_bound_of_choices(problem, BoundEffort::full).value;
    const std::vector<Problem> all = testing::all_choices(problem);
    for (const Problem& each : all) {
      EXPECT_FALSE(testing::BruteForce(each).beats(lower_bound(each, BoundEffort::full)))
          << testing::describe(each);
      EXPECT_FALSE(testing::BruteForce(each).beats(bound)) << testing::describe(each);
    }
    try {
      const ChosenSearch found = search_choices(problem, {}, iterations(600));
      const bool beaten = std::ranges::any_of(all, [&](const Problem& each) {
        return testing::BruteForce(each).beats(found.result.makespan);
      });
      ++(beaten ? missed : solved);
    } catch (const InfeasibleError&) {
      for (const Problem& each : all) {
        EXPECT_FALSE(testing::BruteForce(each).beats(Time{1'000'000})) << testing::describe(each);
      }
    }
  }
  EXPECT_GT(solved, 40);
  EXPECT_LE(missed * 10, solved);
}

}  // namespace
}  // namespace counterflow
