#include "scheduler/partition/balance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <random>
#include <vector>

#include "scheduler/ir/placement.h"

namespace counterflow {
namespace {

CutProblem chain(std::vector<std::int64_t> load, int stages) {
  CutProblem problem;
  problem.load = std::move(load);
  problem.group.resize(static_cast<std::size_t>(stages));
  std::iota(problem.group.begin(), problem.group.end(), 0);
  return problem;
}

std::int64_t bottleneck(const CutProblem& problem, const Cut& cut) {
  const auto loads = group_loads(problem, cut);
  return *std::max_element(loads.begin(), loads.end());
}

// Does every group have room, by the definition?
bool has_room(const CutProblem& problem, const Cut& cut) {
  if (problem.room.empty()) return true;
  std::vector<std::int64_t> need(problem.groups(), 0);
  std::size_t layer = 0;
  for (std::size_t stage = 0; stage < cut.size(); ++stage) {
    for (int i = 0; i < cut[stage]; ++i, ++layer) {
      need[static_cast<std::size_t>(problem.group[stage])] +=
          problem.fixed[layer] + problem.copies[stage] * problem.held[layer];
    }
  }
  for (std::size_t group = 0; group < need.size(); ++group) {
    if (need[group] > problem.room[group]) return false;
  }
  return true;
}

// Every cut without empty stages.
void for_each_cut(std::size_t layers, std::size_t stages,
                  const std::function<void(const Cut&)>& visit) {
  Cut cut;
  const std::function<void(std::size_t)> extend = [&](std::size_t left) {
    const std::size_t more = stages - cut.size();
    if (more == 1) {
      cut.push_back(static_cast<int>(left));
      visit(cut);
      cut.pop_back();
      return;
    }
    for (std::size_t size = 1; size + (more - 1) <= left; ++size) {
      cut.push_back(static_cast<int>(size));
      extend(left - size);
      cut.pop_back();
    }
  };
  extend(layers);
}

std::optional<std::int64_t> least_by_trying_all(const CutProblem& problem) {
  std::optional<std::int64_t> least;
  for_each_cut(problem.layers(), problem.stages(), [&](const Cut& cut) {
    if (!has_room(problem, cut)) return;
    const std::int64_t own = bottleneck(problem, cut);
    if (!least || own < *least) least = own;
  });
  return least;
}

void expect_whole(const CutProblem& problem, const Cut& cut) {
  ASSERT_EQ(cut.size(), problem.stages());
  ASSERT_EQ(std::accumulate(cut.begin(), cut.end(), 0), static_cast<int>(problem.layers()));
  for (const int size : cut) ASSERT_GT(size, 0);
}

TEST(BalancedCut, LeavesNoStageEmpty) {
  const auto found = balanced_cut(chain({1, 1, 1, 1, 1}, 4));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->bottleneck, 2);
  EXPECT_EQ(found->cut, (Cut{2, 1, 1, 1}));
}

TEST(BalancedCut, EqualLayersGiveStagesThatDifferByOneAtMost) {
  EXPECT_EQ(balanced_cut(chain(std::vector<std::int64_t>(38, 1'000'000), 8))->cut,
            (Cut{5, 5, 5, 5, 5, 5, 4, 4}));
  EXPECT_EQ(balanced_cut(chain(std::vector<std::int64_t>(30, 1'000'000), 4))->cut,
            (Cut{8, 8, 7, 7}));
  for (int layers = 1; layers < 70; ++layers) {
    for (int stages = 1; stages <= std::min(layers, 20); ++stages) {
      const CutProblem problem =
          chain(std::vector<std::int64_t>(static_cast<std::size_t>(layers), 1'234'567), stages);
      const Cut cut = balanced_cut(problem)->cut;
      expect_whole(problem, cut);
      ASSERT_LE(cut.front() - cut.back(), 1);
      ASSERT_TRUE(std::is_sorted(cut.rbegin(), cut.rend()));
    }
  }
}

TEST(BalancedCut, WeightedLayers) {
  const CutProblem problem = chain({0, 2, 0, 1, 1, 1, 1, 0, 0, 2, 0}, 4);
  const auto found = balanced_cut(problem);
  ASSERT_TRUE(found);
  EXPECT_EQ(group_loads(problem, found->cut), (std::vector<std::int64_t>{2, 2, 2, 2}));
}

TEST(BalancedCut, ADominantHeadIsSplitWhereItCanBe) {
  const std::vector<std::int64_t> load{1, 1, 1, 1, 8, 8, 8, 8};
  EXPECT_EQ(bottleneck(chain(load, 2), {4, 4}), 32);
  EXPECT_EQ(balanced_cut(chain(load, 3))->bottleneck, 16);
}

TEST(BalancedCut, FewerLayersThanStagesHaveNone) {
  EXPECT_FALSE(balanced_cut(chain({1, 1}, 3)));
}

TEST(BalancedCut, OneStagePerRankIsTheBestOfAllCuts) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 500; ++round) {
    const std::size_t layers = 1 + random() % 11;
    const int stages = static_cast<int>(1 + random() % std::min<std::size_t>(layers, 6));
    std::vector<std::int64_t> load(layers);
    for (std::int64_t& each : load) each = static_cast<std::int64_t>(random() % 12);
    const CutProblem problem = chain(load, stages);
    const auto found = balanced_cut(problem);
    ASSERT_TRUE(found);
    expect_whole(problem, found->cut);
    ASSERT_EQ(found->bottleneck, bottleneck(problem, found->cut));
    ASSERT_EQ(found->bottleneck, *least_by_trying_all(problem));
    ASSERT_EQ(found->lower_bound, found->bottleneck);
  }
}

TEST(BalancedCut, SeveralStagesPerRankAreTheBestOfAllCuts) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 500; ++round) {
    const int ranks = static_cast<int>(1 + random() % 3);
    const int chunks = static_cast<int>(2 + random() % 2);
    const bool v = chunks == 2 && random() % 2 == 0;
    const Placement placement(v ? PlacementKind::v : PlacementKind::loop, ranks, chunks);
    const auto stages = static_cast<std::size_t>(placement.stages());
    CutProblem problem;
    for (std::size_t left = stages + random() % 5; left > 0; --left) {
      problem.load.push_back(static_cast<std::int64_t>(random() % 15));
    }
    for (Stage s = 0; s < placement.stages(); ++s) problem.group.push_back(placement.rank_of(s));
    const auto found = balanced_cut(problem);
    ASSERT_TRUE(found);
    expect_whole(problem, found->cut);
    ASSERT_EQ(found->bottleneck, bottleneck(problem, found->cut));
    ASSERT_EQ(found->bottleneck, *least_by_trying_all(problem));
    ASSERT_EQ(found->lower_bound, found->bottleneck);
  }
}

TEST(BalancedCut, WithinTheRoomOfEachRankTheBestOfAllCuts) {
  std::mt19937_64 random(3);
  int impossible = 0;
  for (int round = 0; round < 500; ++round) {
    const int ranks = static_cast<int>(2 + random() % 3);
    const int chunks = static_cast<int>(1 + random() % 2);
    const Placement placement(PlacementKind::loop, ranks, chunks);
    CutProblem problem;
    for (Stage s = 0; s < placement.stages(); ++s) {
      problem.group.push_back(placement.rank_of(s));
      problem.copies.push_back(static_cast<std::int64_t>(1 + random() % 4));
    }
    for (std::size_t left = problem.stages() + random() % 5; left > 0; --left) {
      problem.load.push_back(static_cast<std::int64_t>(random() % 15));
      problem.fixed.push_back(static_cast<std::int64_t>(random() % 6));
      problem.held.push_back(static_cast<std::int64_t>(random() % 4));
    }
    for (int rank = 0; rank < ranks; ++rank) {
      problem.room.push_back(static_cast<std::int64_t>(8 + random() % 30));
    }
    const auto found = balanced_cut(problem);
    const auto least = least_by_trying_all(problem);
    ASSERT_EQ(found.has_value(), least.has_value());
    if (!found) {
      ++impossible;
      continue;
    }
    expect_whole(problem, found->cut);
    ASSERT_TRUE(has_room(problem, found->cut));
    ASSERT_EQ(bottleneck(problem, found->cut), *least);
    ASSERT_EQ(found->lower_bound, *least);
  }
  EXPECT_GT(impossible, 20);
  EXPECT_LT(impossible, 400);
}

// Real sizes: what is not proven within the budget says so, and is never below its bound.
TEST(BalancedCut, ManyStagesPerRankStayWithinTheirBound) {
  std::mt19937_64 random(4);
  for (int round = 0; round < 6; ++round) {
    const Placement placement(round % 2 == 0 ? PlacementKind::loop : PlacementKind::v, 16, 2);
    CutProblem problem;
    for (int i = 0; i < 94; ++i) {
      problem.load.push_back(static_cast<std::int64_t>(1'000'000 + random() % 2'000'000));
    }
    for (Stage s = 0; s < placement.stages(); ++s) problem.group.push_back(placement.rank_of(s));
    const auto found = balanced_cut(problem, kQuickBudget);
    ASSERT_TRUE(found);
    expect_whole(problem, found->cut);
    EXPECT_GE(found->bottleneck, found->lower_bound);
    EXPECT_LE(static_cast<double>(found->bottleneck),
              1.10 * static_cast<double>(found->lower_bound));
  }
}

TEST(BalancedCut, HugeModelsAreCutInTime) {
  const auto found = balanced_cut(chain(std::vector<std::int64_t>(4096, 77), 1024));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->bottleneck, 4 * 77);
}

}  // namespace
}  // namespace counterflow
