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
#include "scheduler/search/list_scheduler.h"
#include "scheduler/search/model.h"
#include "scheduler/search/move_estimate.h"
#include "scheduler/search/order_evaluator.h"
#include "scheduler/search/order_memory.h"
#include "scheduler/search/order_times.h"
#include "scheduler/search/priorities.h"
#include "scheduler/search/reverse.h"
#include "scheduler/search/search.h"
#include "scheduler/verify/verify.h"
#include "simulator/simulate.h"
#include "tests/support/cases.h"
#include "tests/support/orders.h"
#include "tests/support/problems.h"
#include "tests/support/random_problems.h"

// What search must hold to on any problem.
namespace counterflow {
namespace {

using testing::draw;
using testing::RandomProblems;

constexpr int kProblems = 150;

// A limit for each rank between what one microbatch needs and what everything needs.
void limit_memory(Problem& problem, std::mt19937_64& random) {
  const SearchModel model(problem);
  const bool counted = draw(random, 0, 1) == 0;
  const int resource = counted ? 1 : 0;
  for (std::size_t rank = 0; rank < model.ranks(); ++rank) {
    std::int64_t all = 0;
    std::int64_t one = 0;
    for (auto lane = model.rank_begin[rank]; lane < model.rank_begin[rank + 1]; ++lane) {
      if (model.lanes[lane].kind != OpKind::forward) continue;
      std::int64_t most = 0;
      for (std::uint32_t number = 0; number < model.lanes[lane].count; ++number) {
        const std::int64_t its = model.allocated(lane, model.id(lane, number), resource);
        all += its;
        most = std::max(most, its);
      }
      one += most;
    }
    const std::int64_t limit = draw(random, one, std::max(one, std::max(one + 1, all / 2)));
    if (counted) {
      problem.limits.activations.push_back(limit);
    } else {
      problem.limits.bytes.push_back(Bytes{limit});
    }
  }
}

struct Drawn {
  const Family* family;
  Problem problem;
};

// Every third problem has limits.
Drawn next_problem(RandomProblems& problems, std::mt19937_64& random) {
  auto [family, problem] = problems.next();
  const std::int64_t split = draw(random, 0, 3);
  if (split == 0 && !problem.forward_only) problem.split_backward = SplitBackward::split;
  if (split == 1 && !problem.forward_only) problem.split_backward = SplitBackward::full;
  if (draw(random, 0, 2) == 0) limit_memory(problem, random);
  return {family, std::move(problem)};
}

std::vector<Schedule> seeds_of(const Drawn& drawn) {
  try {
    return {generate(*drawn.family, drawn.problem)};
  } catch (const InputError&) {
    return {};  // split_backward forbids this family
  }
}

SearchBudget iterations(std::int64_t count, std::uint64_t seed = 0) {
  SearchBudget budget;
  budget.iterations = count;
  budget.seed = seed;
  return budget;
}

TEST(Search, IsFaultlessNeverWorseThanItsSeedAndNeverBelowTheBound) {
  RandomProblems problems(61);
  std::mt19937_64 random(62);
  for (int i = 0; i < kProblems; ++i) {
    const Drawn drawn = next_problem(problems, random);
    const std::vector<Schedule> seeds = seeds_of(drawn);
    const SearchResult result = search(drawn.problem, seeds, iterations(300));
    SCOPED_TRACE(std::to_string(i) + " " + std::string(drawn.family->name));
    EXPECT_EQ(testing::text(verify(drawn.problem, result.schedule)), "");
    EXPECT_EQ(Evaluator(drawn.problem).makespan(result.schedule), result.makespan);
    EXPECT_GE(result.makespan, result.lower_bound);
    EXPECT_GE(result.makespan, lower_bound(drawn.problem));
    for (const Schedule& seed : seeds) {
      if (!verify(drawn.problem, seed).empty()) continue;
      EXPECT_LE(result.makespan, Evaluator(drawn.problem).makespan(seed));
    }
  }
}

TEST(Search, TheSimulatorFindsTheSameMakespan) {
  RandomProblems problems(63);
  std::mt19937_64 random(64);
  for (int i = 0; i < 40; ++i) {
    const Drawn drawn = next_problem(problems, random);
    const SearchResult result = search(drawn.problem, {}, iterations(60));
    const Program program = compile(drawn.problem, result.schedule);
    const Simulation simulation = simulate(program, drawn.problem.links, ExecutionModel{});
    ASSERT_TRUE(simulation.diagnostics.empty());
    EXPECT_EQ(measure(program, simulation.timeline).makespan, result.makespan)
        << i << " " << drawn.family->name;
  }
}

TEST(Search, GivesTheSameScheduleForTheSameBudgetAndSeed) {
  RandomProblems problems(65);
  std::mt19937_64 random(66);
  for (int i = 0; i < 30; ++i) {
    const Drawn drawn = next_problem(problems, random);
    const SearchResult one = search(drawn.problem, {}, iterations(200, 7));
    const SearchResult other = search(drawn.problem, {}, iterations(200, 7));
    EXPECT_EQ(one.schedule.ranks, other.schedule.ranks) << i << " " << drawn.family->name;
    EXPECT_EQ(one.iterations, other.iterations);
  }
}

// The first of several is the search there would be without them; all are over the same orders, so
// their bounds hold for each other.
TEST(Search, FromSeveralStartsIsNeverWorseAndAlwaysTheSame) {
  RandomProblems problems(75);
  std::mt19937_64 random(76);
  int shorter = 0;
  for (int i = 0; i < 30; ++i) {
    const Drawn drawn = next_problem(problems, random);
    const SearchResult one = search(drawn.problem, {}, iterations(60, 7));
    SearchBudget budget = iterations(60, 7);
    budget.starts = 4;
    const SearchResult several = search(drawn.problem, {}, budget);
    const SearchResult again = search(drawn.problem, {}, budget);
    EXPECT_LE(several.makespan, one.makespan) << i << " " << drawn.family->name;
    EXPECT_GE(several.lower_bound, one.lower_bound);
    EXPECT_LE(several.lower_bound, several.makespan);
    EXPECT_EQ(several.makespan, Evaluator(drawn.problem).makespan(several.schedule));
    EXPECT_EQ(several.schedule.ranks, again.schedule.ranks);
    EXPECT_EQ(several.iterations, again.iterations);
    shorter += several.makespan < one.makespan ? 1 : 0;
  }
  EXPECT_GT(shorter, 0);
}

TEST(Search, FromSeveralStartsEndsInTimeAndEarlyWhereOneProvesTheOptimum) {
  const Problem problem = testing::family_problem(*find_family("zb-h1"), 4, 1, 8);
  SearchBudget budget;
  budget.time = std::chrono::seconds(600);
  budget.starts = 3;
  EXPECT_TRUE(search(problem, {}, budget).is_optimal());
}

TEST(ListScheduler, NeverRunsIntoADeadEndHoweverTightTheMemory) {
  RandomProblems problems(67);
  std::mt19937_64 random(68);
  int limited = 0;
  for (int i = 0; i < 2 * kProblems; ++i) {
    const Drawn drawn = next_problem(problems, random);
    const SearchModel forward(drawn.problem);
    if (!forward.has_limits || !forward.chain) continue;
    ++limited;
    const SearchModel backward = forward.reversed();
    for (const SearchModel* model : {&forward, &backward}) {
      ListScheduler scheduler(*model);
      const std::vector<PriorityRule> rules = priority_grid(forward, 5);
      for (std::size_t each = 0; each < 60; ++each) {
        EXPECT_GE(scheduler.run(list_rule(*model, rules[each])), 0)
            << i << " " << drawn.family->name << " rule " << each;
        EXPECT_TRUE(OrderMemory(*model).fits(scheduler.orders()));
      }
    }
  }
  EXPECT_GT(limited, 50);
}

TEST(SearchModel, OrdersAndSchedulesTurnIntoEachOther) {
  RandomProblems problems(69);
  for (int i = 0; i < kProblems; ++i) {
    auto [family, problem] = problems.next();
    const Schedule schedule = generate(*family, problem);
    const SearchModel model(problem);
    const SearchModel::Orders orders = model.orders(schedule);
    const Schedule again = model.schedule(orders);
    EXPECT_EQ(testing::text(verify(problem, again)), "") << i << " " << family->name;
    EXPECT_EQ(model.orders(again), orders);
    OrderEvaluator evaluator(model);
    EXPECT_EQ(evaluator.evaluate(orders), Evaluator(problem).makespan(again).count())
        << i << " " << family->name;
    if (model.has_pairs) continue;
    // Backwards twice is forwards; once takes as long where no link queues.
    const SearchModel backward = model.reversed();
    const SearchModel::Orders turned = reversed(model, orders);
    EXPECT_EQ(reversed(backward, turned), orders);
    if (model.limited_links) continue;
    EXPECT_EQ(OrderEvaluator(backward).evaluate(turned), evaluator.evaluate(orders))
        << i << " " << family->name;
  }
}

// Two runs of ops of a rank that change places.
struct Move {
  std::size_t rank;
  std::uint32_t first, middle, last;
};

SearchModel::Orders after(const SearchModel::Orders& orders, const Move& move) {
  SearchModel::Orders changed = orders;
  const auto at = [&](std::uint32_t i) {
    return changed[move.rank].begin() + static_cast<std::ptrdiff_t>(i);
  };
  std::rotate(at(move.first), at(move.middle), at(move.last));
  return changed;
}

// Does the move leave ops of one stage copy and microbatch, and those of a lane, in their order?
bool keeps_copies_in_order(const SearchModel& model, const std::vector<SearchModel::OpId>& order,
                           const Move& move) {
  for (std::uint32_t i = move.first; i < move.middle; ++i) {
    for (std::uint32_t j = move.middle; j < move.last; ++j) {
      const SearchModel::LaneId a = model.lane_of(order[i]);
      const SearchModel::LaneId b = model.lane_of(order[j]);
      const bool one_copy = model.last_of_copy(a) == model.last_of_copy(b);
      if (a == b || (one_copy && model.number_of(order[i]) == model.number_of(order[j]))) {
        return false;
      }
    }
  }
  return true;
}

// Moves taken one after the other, each as the first of some that stays possible; every second is
// refused by its cutoff, and must leave nothing behind.
TEST(OrderTimes, AreThoseOfAnEvaluationOfTheWholeAfterEveryMove) {
  testing::RandomProblems problems(33);
  std::mt19937_64 random(34);
  int taken = 0;
  int circles = 0;
  for (int i = 0; i < testing::cases(150); ++i) {
    const auto [family, problem] = problems.next();
    const SearchModel model(problem);
    SearchModel::Orders orders = model.orders(generate(*family, problem));
    OrderTimes times(model);
    OrderEvaluator whole(model);
    ASSERT_EQ(times.take(orders), whole.evaluate(orders));
    EXPECT_EQ(times.has_ways_out(), !model.has_pairs && !model.limited_links);
    if (!times.has_ways_out()) continue;
    const SearchModel backward = model.reversed();
    OrderEvaluator turned(backward);
    for (int tries = 0; tries < 80; ++tries) {
      const auto rank = static_cast<std::size_t>(
          testing::draw(random, 0, static_cast<std::int64_t>(orders.size()) - 1));
      const auto size = static_cast<std::uint32_t>(orders[rank].size());
      if (size < 2) continue;
      const auto middle = static_cast<std::uint32_t>(testing::draw(random, 1, size - 1));
      const Move move{rank, middle - 1, middle, std::min(size, middle + 1 + tries % 3)};
      if (keeps_copies_in_order(model, orders[rank], move)) {
        const SearchModel::Orders changed = after(orders, move);
        const std::int64_t expected = whole.evaluate(changed);
        if (expected >= 0) {
          EXPECT_LT(times.take_change(changed, rank, move.first, move.last, expected), 0);
        }
        const std::int64_t makespan =
            times.take_change(changed, rank, move.first, move.last, SearchModel::kUnlimited);
        ASSERT_EQ(makespan, expected) << i << " " << family->name;
        if (makespan < 0) {
          ++circles;
          continue;
        }
        ++taken;
        orders = changed;
      }
      ASSERT_GE(whole.evaluate(orders), 0);
      const std::int64_t makespan = turned.evaluate(reversed(model, orders));
      for (SearchModel::LaneId lane = 0; lane < model.lanes.size(); ++lane) {
        const std::uint32_t count = model.lanes[lane].count;
        for (std::uint32_t number = 0; number < count; ++number) {
          const SearchModel::OpId op = model.id(lane, number);
          ASSERT_EQ(times.begin(op), whole.begins()[op]) << i << " " << family->name;
          ASSERT_EQ(times.end(op), whole.ends()[op]);
          ASSERT_EQ(times.way_out(op), turned.ends()[model.id(lane, count - 1 - number)]);
          ASSERT_LE(times.begin(op) + times.way_out(op), makespan);
        }
      }
    }
  }
  EXPECT_GT(taken, testing::cases(1'500));
  EXPECT_GT(circles, testing::cases(20));
}

TEST(MoveEstimate, IsTheMakespanWhereNothingMovesAndSeldomTooLong) {
  testing::RandomProblems problems(31);
  std::mt19937_64 random(32);
  int better = 0;
  int refused = 0;
  for (int i = 0; i < testing::cases(150); ++i) {
    const auto [family, problem] = problems.next();
    const SearchModel model(problem);
    OrderTimes times(model);
    const MoveEstimate estimate(model, times);
    EXPECT_EQ(estimate.exists(), !model.has_pairs && !model.limited_links);
    if (!estimate.exists()) continue;
    const SearchModel::Orders orders = model.orders(generate(*family, problem));
    const std::int64_t makespan = times.take(orders);
    std::int64_t longest = 0;
    for (std::size_t rank = 0; rank < orders.size(); ++rank) {
      const auto size = static_cast<std::uint32_t>(orders[rank].size());
      for (std::uint32_t k = 0; k < size; ++k) {
        longest = std::max(longest, estimate.after(orders[rank], k, k, k + 1));
      }
      for (int tries = 0; tries < 20 && size > 1; ++tries) {
        const auto middle = static_cast<std::uint32_t>(testing::draw(random, 1, size - 1));
        const Move move{rank, middle - 1, middle, std::min(size, middle + 1 + tries % 3)};
        const std::int64_t changed = OrderEvaluator(model).evaluate(after(orders, move));
        if (changed < 0 || changed > makespan) continue;
        ++better;
        if (estimate.after(orders[rank], move.first, move.middle, move.last) > makespan) ++refused;
      }
    }
    EXPECT_EQ(longest, makespan) << i << " " << family->name;
  }
  EXPECT_GT(better, testing::cases(1'000));
  EXPECT_LT(refused * 20, better) << refused << " of " << better;
}

}  // namespace
}  // namespace counterflow
