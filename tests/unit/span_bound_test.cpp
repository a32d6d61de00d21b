#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "scheduler/bounds/span.h"
#include "scheduler/search/model.h"
#include "scheduler/search/order_evaluator.h"
#include "scheduler/search/order_memory.h"
#include "tests/support/cases.h"
#include "tests/support/problems.h"
#include "tests/support/random_problems.h"

namespace counterflow {
namespace {

using testing::draw;
using testing::uniform_problem;

// Every order of a rank in which its microbatches keep their sequence, within its memory.
class RankOrders {
 public:
  RankOrders(const SearchModel& model, std::size_t rank)
      : model_(model), memory_(model), rank_(rank), next_(model.lanes.size(), 0) {
    extend();
  }
  [[nodiscard]] const std::vector<std::vector<SearchModel::OpId>>& all() const { return all_; }

 private:
  void extend() {
    bool is_whole = true;
    for (auto lane = model_.rank_begin[rank_]; lane < model_.rank_begin[rank_ + 1]; ++lane) {
      if (next_[lane] == model_.lanes[lane].count) continue;
      is_whole = false;
      // The lanes of a stage copy are neighbours, each after the one before it.
      if (lane > model_.rank_begin[rank_] && next_[lane] == next_[lane - 1]) continue;
      order_.push_back(model_.id(lane, next_[lane]++));
      extend();
      order_.pop_back();
      --next_[lane];
    }
    if (is_whole && memory_.fits(static_cast<std::uint32_t>(rank_), order_)) all_.push_back(order_);
  }

  const SearchModel& model_;
  OrderMemory memory_;
  std::size_t rank_;
  std::vector<std::uint32_t> next_;
  std::vector<SearchModel::OpId> order_;
  std::vector<std::vector<SearchModel::OpId>> all_;
};

// The least longest span of all orders of two ranks, every op as early as it can be.
std::int64_t least_span(const Problem& problem) {
  const SearchModel model(problem);
  const RankOrders first(model, 0);
  const RankOrders second(model, 1);
  OrderEvaluator evaluator(model);
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const auto& one : first.all()) {
    for (const auto& other : second.all()) {
      const SearchModel::Orders orders{one, other};
      if (evaluator.evaluate(orders) < 0) continue;
      std::int64_t longest = 0;
      for (const auto& order : orders) {
        longest =
            std::max(longest, evaluator.ends()[order.back()] - evaluator.begins()[order.front()]);
      }
      least = std::min(least, longest);
    }
  }
  return least;
}

Problem two_ranks(std::mt19937_64& random) {
  const int microbatches = static_cast<int>(draw(random, 1, 4));
  Problem problem = uniform_problem(PlacementKind::loop, 2, 1, microbatches, Time{1}, Time{1},
                                    Time{1}, Time{draw(random, 0, 4)});
  std::vector<StageCost> costs;
  for (int s = 0; s < 2; ++s) {
    costs.push_back({Time{draw(random, 0, 9)}, Time{draw(random, 0, 9)}, Time{draw(random, 0, 9)}});
  }
  problem.costs = Costs(costs);
  for (StageMemory& memory : problem.memory) {
    const std::int64_t activation = draw(random, 1, 4);
    memory = {Bytes{activation}, Bytes{draw(random, 0, activation)}};
  }
  const std::int64_t which = draw(random, 0, 3);
  for (int rank = 0; rank < 2; ++rank) {
    if (which % 2 == 1) problem.limits.bytes.push_back(Bytes{draw(random, 4, 10)});
    if (which >= 2) problem.limits.activations.push_back(draw(random, 1, 4));
  }
  if (draw(random, 0, 3) == 0) problem.split_backward = SplitBackward::full;
  return problem;
}

TEST(SpanBound, IsNeverAboveTheBestOrder) {
  std::mt19937_64 random(21);
  int met = 0;
  int idles = 0;
  constexpr int kProblems = testing::cases(150);
  for (int i = 0; i < kProblems; ++i) {
    const Problem problem = two_ranks(random);
    const std::int64_t bound = span_bound(problem).count();
    const std::int64_t least = least_span(problem);
    ASSERT_LE(bound, least) << i;
    met += bound == least ? 1 : 0;
    Problem unlimited = problem;
    unlimited.limits = {};
    idles += span_bound(unlimited).count() < bound ? 1 : 0;
  }
  // Not by being useless.
  EXPECT_GT(met, kProblems / 3);
  EXPECT_GT(idles, kProblems / 20);
}

// Rank 0 waits for the first gradient with p forwards to run, and for the last with p-1 I and W.
TEST(SpanBound, OfOneActivationARankIsTheSpanOfZeroBubble) {
  Problem problem =
      uniform_problem(PlacementKind::loop, 4, 1, 12, Time{10}, Time{11}, Time{8}, Time{1});
  problem.limits.activations.assign(4, 4);
  EXPECT_EQ(span_bound(problem), Time{12 * 29 + 3 * (10 + 11 + 4 - 8)});
  problem.limits.activations.assign(4, 12);
  EXPECT_EQ(span_bound(problem), Time{12 * 29});
}

TEST(SpanBound, IsTheLoadWhereMoreStagesOrCopiesShareARank) {
  const Problem loop =
      uniform_problem(PlacementKind::loop, 2, 2, 6, Time{3}, Time{4}, Time{2}, Time{1});
  EXPECT_EQ(span_bound(loop), Time{2 * 6 * 9});
  const Problem both =
      uniform_problem(PlacementKind::bidirectional, 2, 1, 6, Time{3}, Time{4}, Time{2}, Time{1});
  EXPECT_EQ(span_bound(both), Time{6 * 9});
}

}  // namespace
}  // namespace counterflow
