#include "scheduler/problem/copies.h"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>
#include <vector>

#include "scheduler/ir/schedule_file.h"
#include "scheduler/verify/verify.h"
#include "schedules/registry.h"
#include "tests/support/optimizers.h"
#include "tests/support/phases.h"
#include "tests/support/problems.h"

namespace counterflow {
namespace {

Problem one_of(const char* family, int p, int m, int copies) {
  const Family& found = *find_family(family);
  return testing::with_optimizer(testing::family_problem(found, p, found.default_chunks, m),
                                 {.data_parallel = copies});
}

TEST(Copies, OfAPlacementHaveRanksAndReplicasOfTheirOwn) {
  const Placement one(PlacementKind::bidirectional, 4, 1);
  const Placement all(one, 3);
  EXPECT_EQ(all.ranks(), 12);
  EXPECT_EQ(all.stages(), 4);
  EXPECT_EQ(all.replicas(), 6);
  for (Stage s = 0; s < 4; ++s) {
    for (int copy = 0; copy < 3; ++copy) {
      EXPECT_EQ(all.rank_of(s, 2 * copy), 4 * copy + s);
      EXPECT_EQ(all.rank_of(s, 2 * copy + 1), 4 * copy + 3 - s);
    }
  }
  EXPECT_EQ(all.chunks_of(9)[0], (Chunk{1, 4}));
  EXPECT_EQ(all.chunks_of(9)[1], (Chunk{2, 5}));
  EXPECT_THROW(Placement(all, 2), std::invalid_argument);
  EXPECT_THROW(Placement(one, 0), std::invalid_argument);
}

TEST(Copies, ShareMicrobatchesPhaseByPhase) {
  Problem one = one_of("dualpipe", 4, 11, 2);
  testing::set_phases(one, {{PhaseKind::eval, 3}, {PhaseKind::train, 8}});
  const Problem all = in_copies(one);
  EXPECT_EQ(all.microbatches, 22);
  // Three for the first pipeline, two of them down; as many for the second; then eight and eight.
  const std::vector<int> replicas = {0, 0, 1, 2, 2, 3, 0, 0, 0, 0, 1,
                                     1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3};
  for (Microbatch mb = 0; mb < 22; ++mb) {
    EXPECT_EQ(all.replica_of(mb), replicas[static_cast<std::size_t>(mb)]) << mb;
    EXPECT_EQ(all.trains(mb), mb >= 6) << mb;
  }
}

TEST(Copies, OfAnOrderAreOrdersOfAllMicrobatches) {
  for (const char* family : {"1f1b", "zb-h1", "zbv", "dualpipe", "interleaved-1f1b"}) {
    for (const int copies : {2, 3}) {
      Problem one = one_of(family, 4, 8, copies);
      testing::set_phases(one, {{PhaseKind::train, 8}, {PhaseKind::eval, 5}});
      const Problem all = in_copies(one);
      const Schedule schedule = generate(*find_family(family), one);
      const Schedule whole = in_copies(one, schedule);
      ASSERT_EQ(whole.ranks.size(), 4U * static_cast<std::size_t>(copies));
      EXPECT_TRUE(verify(all, whole).empty()) << family;
      // Slot for slot the same work, on every microbatch once.
      std::set<Op> seen;
      for (std::size_t r = 0; r < whole.ranks.size(); ++r) {
        ASSERT_EQ(whole.ranks[r].size(), schedule.ranks[r % 4].size());
        for (std::size_t k = 0; k < whole.ranks[r].size(); ++k) {
          EXPECT_EQ(whole.ranks[r][k].first.kind, schedule.ranks[r % 4][k].first.kind);
          EXPECT_EQ(whole.ranks[r][k].first.stage, schedule.ranks[r % 4][k].first.stage);
          EXPECT_TRUE(seen.insert(whole.ranks[r][k].first).second);
        }
      }
    }
  }
}

TEST(Copies, KeepCostsLimitsAndLinksOfTheOne) {
  Problem one = one_of("1f1b", 2, 2, 2);
  one.costs =
      Costs(one.costs.stages(),
            {.forward = {1, 3}, .backward_input = {}, .backward_weight = {}, .activation = {}});
  one.limits.bytes = {Bytes{5}, Bytes{7}};
  one.links = Links(2, {Time{0}, Time{4}, Time{9}, Time{0}}, 0);
  const Problem all = in_copies(one);
  EXPECT_EQ(all.costs.factors().forward, (std::vector<double>{1, 3, 1, 3}));
  EXPECT_EQ(all.limits.bytes, (std::vector<Bytes>{Bytes{5}, Bytes{7}, Bytes{5}, Bytes{7}}));
  EXPECT_EQ(all.links.latency(2, 3), Time{4});
  EXPECT_EQ(all.links.latency(3, 2), Time{9});
  EXPECT_EQ(all.links.latency(0, 3), Time{4});
  EXPECT_EQ(all.links.latency(0, 2), Time{9});  // between copies of one rank, the longest
  EXPECT_EQ(all.links.latency(2, 2), Time{0});
}

TEST(Copies, OfOneChangeNothing) {
  const Problem one = one_of("1f1b", 2, 2, 1);
  EXPECT_EQ(in_copies(one).ranks(), 2);
  EXPECT_EQ(in_copies(in_copies(one_of("1f1b", 2, 2, 3))).ranks(), 6);
}

TEST(Copies, AreNamedInText) {
  const Op op{OpKind::forward, 5, 3, 7};
  EXPECT_EQ(to_string(op), "5~3F7");
  const ScheduleFile file = parse_schedule("5~3F7,~0B1\n2~1W4\n", "x.csv");
  EXPECT_EQ(file.rows[0][0].op, op);
  EXPECT_EQ(file.rows[0][1].op.replica, 1);
  EXPECT_EQ(file.rows[1][0].op.replica, 2);
}

}  // namespace
}  // namespace counterflow
