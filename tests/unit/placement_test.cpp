#include "scheduler/ir/placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

namespace counterflow {
namespace {

std::vector<Rank> ranks_of(const Placement& placement, int replica = 0) {
  std::vector<Rank> ranks;
  for (Stage s = 0; s < placement.stages(); ++s) ranks.push_back(placement.rank_of(s, replica));
  return ranks;
}

template <typename Make>
std::string refusal_of(Make make) {
  try {
    static_cast<void>(make());
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Placement, LoopGoesRound) {
  const Placement loop(PlacementKind::loop, 3, 2);
  EXPECT_EQ(ranks_of(loop), (std::vector<Rank>{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(loop.replicas(), 1);
  // Chunk c of rank r is stage c*p + r.
  EXPECT_EQ(loop.chunks_of(1)[0], (Chunk{1, 0}));
  EXPECT_EQ(loop.chunks_of(1)[1], (Chunk{4, 0}));
}

TEST(Placement, VGoesThereAndBack) {
  EXPECT_EQ(ranks_of(Placement(PlacementKind::v, 3, 2)), (std::vector<Rank>{0, 1, 2, 2, 1, 0}));
}

TEST(Placement, WaveIsVRepeated) {
  EXPECT_EQ(ranks_of(Placement(PlacementKind::wave, 2, 4)),
            (std::vector<Rank>{0, 1, 1, 0, 0, 1, 1, 0}));
}

TEST(Placement, BidirectionalHasEveryStageTwice) {
  const Placement both(PlacementKind::bidirectional, 4, 1);
  EXPECT_EQ(both.stages(), 4);
  EXPECT_EQ(both.replicas(), 2);
  EXPECT_EQ(ranks_of(both, 0), (std::vector<Rank>{0, 1, 2, 3}));
  EXPECT_EQ(ranks_of(both, 1), (std::vector<Rank>{3, 2, 1, 0}));
  // Ascending stage, whatever the replica.
  EXPECT_EQ(both.chunks_of(3)[0], (Chunk{0, 1}));
  EXPECT_EQ(both.chunks_of(3)[1], (Chunk{3, 0}));
}

TEST(Placement, ListSaysWhereEachStageIs) {
  const Placement list(3, {2, 0, 0});
  EXPECT_EQ(list.kind(), PlacementKind::list);
  EXPECT_EQ(list.stages(), 3);
  EXPECT_EQ(ranks_of(list), (std::vector<Rank>{2, 0, 0}));
  EXPECT_EQ(list.chunks_of(0).size(), 2U);
  EXPECT_TRUE(list.chunks_of(1).empty());
}

TEST(Placement, EveryStageCopyIsOnItsRank) {
  for (const auto& [kind, chunks] :
       std::vector<std::pair<PlacementKind, int>>{{PlacementKind::loop, 3},
                                                  {PlacementKind::v, 2},
                                                  {PlacementKind::wave, 4},
                                                  {PlacementKind::bidirectional, 1}}) {
    const Placement placement(kind, 4, chunks);
    for (int replica = 0; replica < placement.replicas(); ++replica) {
      for (Stage stage = 0; stage < placement.stages(); ++stage) {
        const auto held = placement.chunks_of(placement.rank_of(stage, replica));
        const Chunk chunk{stage, static_cast<std::uint8_t>(replica)};
        EXPECT_EQ(std::ranges::count(held, chunk), 1) << name(kind);
      }
    }
  }
}

TEST(Placement, RefusesWhatDoesNotExist) {
  EXPECT_EQ(refusal_of([] { return Placement(PlacementKind::loop, 0, 1); }),
            "a placement needs at least one rank and one stage a rank");
  EXPECT_EQ(refusal_of([] { return Placement(PlacementKind::loop, 1, 0); }),
            "a placement needs at least one rank and one stage a rank");
  EXPECT_EQ(refusal_of([] { return Placement(PlacementKind::v, 4, 1); }),
            "the v placement has 2 stages a rank, not 1");
  EXPECT_EQ(refusal_of([] { return Placement(PlacementKind::wave, 4, 3); }),
            "the wave placement has an even number of stages a rank, not 3");
  EXPECT_EQ(refusal_of([] { return Placement(PlacementKind::bidirectional, 4, 2); }),
            "the bidirectional placement has 1 stage a rank, twice, not 2");
  EXPECT_EQ(refusal_of([] { return Placement(PlacementKind::bidirectional, 3, 1); }),
            "the bidirectional placement needs an even number of ranks, not 3");
  EXPECT_EQ(refusal_of([] { return Placement(2, {0, 2}); }),
            "stage 1 is placed on rank 2; ranks are 0..1");
  EXPECT_EQ(refusal_of([] { return Placement(2, {-1}); }),
            "stage 0 is placed on rank -1; ranks are 0..1");
}

TEST(PlacementKind, NamesReadBack) {
  for (const PlacementKind kind : {PlacementKind::loop, PlacementKind::v, PlacementKind::wave,
                                   PlacementKind::bidirectional, PlacementKind::list}) {
    EXPECT_EQ(placement_kind(name(kind)), kind);
  }
  EXPECT_EQ(placement_kind("Loop"), std::nullopt);
  EXPECT_EQ(placement_kind(""), std::nullopt);
}

}  // namespace
}  // namespace counterflow
