#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/error.h"
#include "scheduler/graph/evaluate.h"
#include "scheduler/search/alternatives.h"
#include "scheduler/search/expected_costs.h"
#include "scheduler/search/model.h"
#include "scheduler/search/order_evaluator.h"
#include "scheduler/search/search.h"
#include "schedules/registry.h"
#include "simulator/monte_carlo.h"
#include "tests/support/problems.h"

// Orders that stand disturbances: what is expected, what is chosen, what is reproducible.
namespace counterflow {
namespace {

using testing::uniform_problem;

constexpr Time kHorizon{1'000'000};

Problem loop(int p, int m) {
  return uniform_problem(PlacementKind::loop, p, 1, m, Time{1000}, Time{1200}, Time{600},
                         Time{100});
}

Scenario slow_rank(Rank rank, double factor, Time from = Time{0},
                   std::optional<Time> until = std::nullopt) {
  Scenario scenario;
  scenario.slowdowns.push_back({Scenario::OneRank{rank}, factor, from, until});
  return scenario;
}

Jitter noise(double sigma) {
  Jitter jitter;
  jitter.compute = {Distribution::lognormal, sigma};
  return jitter;
}

SearchBudget iterations(std::int64_t count) {
  SearchBudget budget;
  budget.iterations = count;
  return budget;
}

// ---- Costs to expect
// -----------------------------------------------------------------------------

TEST(ExpectedCosts, AreTheGivenOnesWhereNothingIsSlower) {
  EXPECT_FALSE(with_expected_costs(loop(3, 4), noise(0.2), {}, kHorizon));
  EXPECT_FALSE(with_expected_costs(loop(3, 4), {}, slow_rank(1, 2, kHorizon), kHorizon));
  EXPECT_FALSE(with_late_messages(loop(3, 4), {}, 2));
}

TEST(ExpectedCosts, OfASlowRankAreThoseOfItsStages) {
  const auto slower = with_expected_costs(loop(3, 4), {}, slow_rank(1, 2), kHorizon);
  ASSERT_TRUE(slower);
  EXPECT_EQ(slower->costs.stages()[0].forward, Time{1000});
  EXPECT_EQ(slower->costs.stages()[1].forward, Time{2000});
  EXPECT_EQ(slower->costs.stages()[1].backward_input, Time{2400});
  EXPECT_EQ(slower->costs.stages()[1].backward_weight, Time{1200});
  EXPECT_EQ(slower->links.latency(0, 1), Time{100});
}

TEST(ExpectedCosts, OfWhatIsSlowForAWhileAreEvenlySpread) {
  // In half of the time half as fast: three quarters of the work.
  const auto half = with_expected_costs(
      loop(3, 4), {}, slow_rank(1, 2, Time{0}, Time{kHorizon.count() / 2}), kHorizon);
  ASSERT_TRUE(half);
  EXPECT_EQ(half->costs.stages()[1].forward, Time{1333});
  Scenario outage;
  outage.slowdowns.push_back(
      {Scenario::OneLink{0, 1}, std::nullopt, Time{0}, Time{kHorizon.count() / 2}});
  const auto waits = with_expected_costs(loop(3, 4), {}, outage, kHorizon);
  ASSERT_TRUE(waits);
  EXPECT_EQ(waits->links.latency(0, 1), Time{200});
  EXPECT_EQ(waits->links.latency(1, 0), Time{100});
}

TEST(ExpectedCosts, AreTheMeansOfTheDraws) {
  Jitter jitter;
  jitter.kinds.emplace_back(OpKind::forward, Spread{Distribution::exponential, 0.5});
  jitter.transfer = {Distribution::exponential, 0.2};
  jitter.ranks.push_back({2, 1.5, Spread{Distribution::normal, 0.1}});
  jitter.links.push_back({1, 2, 3, std::nullopt});
  jitter.stragglers = {0.1, 2};
  const auto slower = with_expected_costs(loop(3, 4), jitter, {}, kHorizon);
  ASSERT_TRUE(slower);
  EXPECT_EQ(slower->costs.stages()[0].forward, Time{1650});         // 1.5 x 1.1
  EXPECT_EQ(slower->costs.stages()[0].backward_input, Time{1320});  // 1.1
  EXPECT_EQ(slower->costs.stages()[2].forward, Time{1650});         // 1.5 x 1.1, its own spread
  EXPECT_EQ(slower->costs.stages()[2].backward_weight, Time{990});  // 1.5 x 1.1
  EXPECT_EQ(slower->links.latency(0, 1), Time{120});
  EXPECT_EQ(slower->links.latency(1, 2), Time{360});
}

TEST(ExpectedCosts, OfBothCopiesOfAStageAreTheMean) {
  const Problem problem =
      uniform_problem(PlacementKind::bidirectional, 4, 1, 8, Time{1000}, Time{1000}, Time{1000});
  const auto slower = with_expected_costs(problem, {}, slow_rank(0, 3), kHorizon);
  ASSERT_TRUE(slower);
  EXPECT_EQ(slower->costs.stages()[0].forward, Time{2000});
  EXPECT_EQ(slower->costs.stages()[3].forward, Time{2000});
  EXPECT_EQ(slower->costs.stages()[1].forward, Time{1000});
}

TEST(ExpectedCosts, PairsVaryWithTheirForward) {
  Problem problem = loop(2, 4);
  PairCosts pairs;
  pairs.set(0, 0, Time{2000});
  problem.costs = Costs(problem.costs.stages(), {}, pairs);
  const auto slower = with_expected_costs(problem, {}, slow_rank(0, 2), kHorizon);
  ASSERT_TRUE(slower);
  EXPECT_EQ(slower->costs.pairs().find(0, 0), Time{4000});
  EXPECT_EQ(slower->costs.pairs().find(1, 1), Time{-1});
}

TEST(ExpectedCosts, OfMovesAreThoseOfTheirRank) {
  Problem problem = loop(2, 4);
  problem.memory.assign(2, {Bytes{8}, Bytes{8}});
  const Keeping offload{
      .kind = KeepingKind::offload, .store = Time{300}, .restore = Time{400}, .kept = Bytes{1}};
  problem = with_keeping(std::move(problem), {offload, offload});
  const auto slower = with_expected_costs(problem, {}, slow_rank(1, 2), kHorizon);
  ASSERT_TRUE(slower);
  EXPECT_EQ(slower->costs.stages()[0].restore, Time{400});
  EXPECT_EQ(slower->costs.stages()[1].store, Time{600});
  EXPECT_EQ(slower->costs.stages()[1].restore, Time{800});
  // A search on them sees the same.
  const SearchModel model(*slower);
  const SearchModel::Orders orders = model.orders(generate(*find_family("zb-h1"), *slower));
  EXPECT_EQ(Time{OrderEvaluator(model).evaluate(orders)},
            Evaluator(*slower).makespan(model.schedule(orders)));
}

TEST(ExpectedCosts, MessagesAreLateByDeviationsOfTheirMaker) {
  const auto later = with_late_messages(loop(3, 4), noise(0.1), 2);
  ASSERT_TRUE(later);
  EXPECT_EQ(later->links.latency(0, 1), Time{300});  // 100 + 2 x 0.1 x 1000
  EXPECT_EQ(later->links.latency(1, 0), Time{340});  // 100 + 2 x 0.1 x 1200
  EXPECT_EQ(later->costs.stages()[1].forward, Time{1000});
}

TEST(ExpectedCosts, AMessageWithABandwidthCountsWhole) {
  Problem problem = loop(2, 4);
  problem.links = Links(Time{100}, 1e9);
  problem.message.assign(2, Bytes{400});  // 400 ns on the link
  Jitter jitter;
  jitter.links.push_back({0, 1, 2, std::nullopt});
  const auto slower = with_expected_costs(problem, jitter, {}, kHorizon);
  ASSERT_TRUE(slower);
  EXPECT_EQ(slower->links.latency(0, 1) + slower->links.occupancy(Bytes{400}), Time{1000});
  EXPECT_EQ(slower->links.latency(1, 0) + slower->links.occupancy(Bytes{400}), Time{500});
}

// ---- The choice
// ----------------------------------------------------------------------------------

TEST(SearchObjective, ChoosesTheLeastOfAllItWasAskedFor) {
  const Problem problem = loop(3, 6);
  const std::vector<Schedule> seeds{generate(*find_family("gpipe"), problem)};
  std::vector<Time> asked;
  // Few forwards before the first backward of rank 0: not what a short makespan asks for.
  const SearchObjective warm_up = [&](const Schedule& schedule) {
    std::int64_t count = 0;
    while (schedule.ranks[0][static_cast<std::size_t>(count)].first.kind == OpKind::forward)
      ++count;
    asked.emplace_back(count);
    return asked.back();
  };
  const SearchResult found = search(problem, seeds, iterations(100), warm_up);
  ASSERT_GT(asked.size(), 2U);
  const Time chosen = found.objective;
  for (const Time each : asked) EXPECT_LE(chosen, each);
  EXPECT_EQ(warm_up(found.schedule), chosen);
  EXPECT_EQ(Evaluator(problem).makespan(found.schedule), found.makespan);
  EXPECT_EQ(Evaluator(problem).makespan(found.fastest), found.best_makespan);
  EXPECT_EQ(found.best_makespan, search(problem, seeds, iterations(100)).makespan);
}

TEST(SearchAlternatives, AreTheSameForAnyNumberOfThreads) {
  const Problem problem = loop(4, 8);
  const Jitter jitter = noise(0.15);
  std::vector<Alternative> alternatives;
  for (const int deviations : {1, 2}) {
    alternatives.push_back({*with_late_messages(problem, jitter, deviations), "late"});
  }
  const std::vector<Schedule> seeds{generate(*find_family("zb-h1"), problem)};
  const auto objective = makespan_under(problem, ExecutionModel::ideal(), jitter, {},
                                        {.quantile = 0.95, .trials = 20, .seed = 4});
  const auto found = [&](int threads) {
    return search_alternatives(problem, alternatives, seeds, iterations(150), objective, threads);
  };
  const SearchResult one = found(1);
  for (const int threads : {2, 5}) {
    const SearchResult other = found(threads);
    EXPECT_EQ(other.schedule.ranks, one.schedule.ranks);
    EXPECT_EQ(other.objective, one.objective);
    EXPECT_EQ(other.iterations, one.iterations);
    EXPECT_EQ(other.found_by, one.found_by);
  }
}

TEST(SearchAlternatives, JudgeAnOrderOnce) {
  const Problem problem = loop(3, 5);
  const std::vector<Alternative> same(3, {problem, "the same"});
  std::atomic<int> asked{0};
  const SearchObjective count = [&](const Schedule& order) {
    ++asked;
    return Evaluator(problem).makespan(order);
  };
  const SearchResult found = search_alternatives(problem, same, {}, iterations(40), count, 1);
  EXPECT_EQ(found.makespan, found.best_makespan);
  const int once = asked;
  asked = 0;
  (void)search_alternatives(problem, {}, {}, iterations(40), count, 1);
  EXPECT_EQ(asked, once);
}

TEST(SearchWithAnObjective, JudgesNoMoreThanTheTimeAllows) {
  const Problem problem = loop(4, 8);
  std::vector<Schedule> seeds;
  for (const char* family : {"gpipe", "1f1b", "zb-h1", "zb-h2"}) {
    seeds.push_back(generate(*find_family(family), problem));
  }
  std::atomic<int> asked{0};
  const SearchObjective count = [&](const Schedule& order) {
    ++asked;
    return Evaluator(problem).makespan(order);
  };
  SearchBudget spent;
  spent.time = Time{1};
  const SearchResult found = search(problem, seeds, spent, count);
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(found.objective, found.makespan);
  asked = 0;
  const std::vector<Alternative> same(3, {problem, "the same"});
  EXPECT_EQ(search_alternatives(problem, same, seeds, spent, count, 2).objective, found.objective);
  EXPECT_LE(asked, 2);  // what both threads began with
  asked = 0;
  (void)search(problem, seeds, iterations(1), count);
  EXPECT_GE(asked, 4);  // iterations leave time for all
}

TEST(SearchAlternatives, PassOnWhatTheObjectiveThrows) {
  const Problem problem = loop(3, 5);
  const std::vector<Alternative> same(1, {problem, "the same"});
  const SearchObjective refuse = [](const Schedule&) -> Time { throw InputError("refused"); };
  EXPECT_THROW((void)search_alternatives(problem, same, {}, iterations(10), refuse, 2), InputError);
}

// Stage 1 of equal stages is on a rank that is twice as slow: a search on the given costs cannot
// know.
TEST(SearchAlternatives, ReorderForARankThatIsKnownToBeSlow) {
  Problem problem = loop(4, 8);
  problem.limits.activations.assign(4, 4);
  const Scenario scenario = slow_rank(1, 2);
  const auto objective =
      makespan_under(problem, ExecutionModel::ideal(), {}, scenario, DisturbedMakespan{});
  auto slower = with_expected_costs(problem, {}, scenario, kHorizon);
  ASSERT_TRUE(slower);
  const Time best = search(*slower, {}, iterations(400)).makespan;
  const std::vector<Alternative> alternatives{{std::move(*slower), "expected costs"}};
  const SearchResult found =
      search_alternatives(problem, alternatives, {}, iterations(400), objective, 2);
  EXPECT_EQ(found.objective, best);  // what is expected is what happens
  EXPECT_LT(found.objective, objective(found.fastest));
  EXPECT_GE(found.makespan, found.best_makespan);
  EXPECT_NE(found.found_by.find("expected costs"), std::string::npos);
}

}  // namespace
}  // namespace counterflow
