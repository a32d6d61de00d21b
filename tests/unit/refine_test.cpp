#include "scheduler/partition/refine.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

namespace counterflow {
namespace {

// The distance to a cut, in layers.
ScoreCut distance_to(const Cut& goal, int& calls) {
  return [goal, &calls](const Cut& cut) {
    ++calls;
    CutScore score;
    for (std::size_t s = 0; s < cut.size(); ++s) score.makespan += Time{std::abs(cut[s] - goal[s])};
    return score;
  };
}

TEST(RefinedCut, FollowsTheScoreToItsLeast) {
  int calls = 0;
  const RefinedCut found = refine_cut({{4, 4, 4, 4}}, distance_to({1, 7, 2, 6}, calls), 1000);
  EXPECT_EQ(found.cut, (Cut{1, 7, 2, 6}));
  EXPECT_EQ(found.score.makespan, Time{0});
  EXPECT_EQ(found.scored, calls);
}

// 10 layers in 4 stages: binomial(9, 3) cuts.
TEST(RefinedCut, WhereTheNumberAllowsScoresEveryCut) {
  int calls = 0;
  const RefinedCut all = refine_cut({{7, 1, 1, 1}}, distance_to({1, 1, 1, 7}, calls), 84);
  EXPECT_TRUE(all.complete);
  EXPECT_EQ(calls, 84);
  EXPECT_EQ(all.cut, (Cut{1, 1, 1, 7}));
  EXPECT_FALSE(refine_cut({{7, 1, 1, 1}}, distance_to({1, 1, 1, 7}, calls), 83).complete);
  const Cut long_cut(300, 3);
  EXPECT_FALSE(refine_cut({long_cut}, distance_to(long_cut, calls), 50).complete);
}

TEST(RefinedCut, NeverEmptiesAStageAndNeverScoresACutTwice) {
  std::set<Cut> seen;
  const RefinedCut found = refine_cut(
      {{2, 2, 1}, {1, 2, 2}},
      [&](const Cut& cut) {
        EXPECT_TRUE(seen.insert(cut).second);
        for (const int size : cut) EXPECT_GT(size, 0);
        return CutScore{0, Time{cut[1]}, 0};
      },
      1000);
  EXPECT_EQ(found.cut[1], 1);
}

TEST(RefinedCut, StartsFromTheBestAndKeepsToItsNumberOfCuts) {
  int calls = 0;
  const RefinedCut found =
      refine_cut({{9, 1, 2}, {2, 5, 5}, {8, 2, 2}}, distance_to({1, 1, 10}, calls), 7);
  EXPECT_EQ(calls, 7);
  EXPECT_LT(found.score.makespan, Time{10});
}

TEST(RefinedCut, FittingInMemoryComesBeforeTheMakespan) {
  const RefinedCut found = refine_cut(
      {{5, 1}},
      [](const Cut& cut) {
        const double over = cut[0] > 3 ? cut[0] - 3 : 0;
        return CutScore{over, Time{-cut[0]}, 0};
      },
      100);
  EXPECT_EQ(found.cut, (Cut{3, 3}));
}

}  // namespace
}  // namespace counterflow
