#include "executor/processes/agreement.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "executor/processes/wire.h"

namespace counterflow::exec {
namespace {

const Intent kThis{0xabc, "2 steps under 'gloo'"};
const Intent kOther{0xdef, "2 steps under 'gloo'"};
const Intent kLonger{0xabc, "3 steps under 'gloo'"};

TEST(Agreement, IsNoDisagreement) {
  EXPECT_FALSE(disagreement({}));
  EXPECT_FALSE(disagreement(std::vector(1, kThis)));
  EXPECT_FALSE(disagreement(std::vector(7, kThis)));
}

TEST(Agreement, BlamesWhoIsNotWithMost) {
  const auto at_zero = disagreement(std::vector{kOther, kThis, kThis});
  ASSERT_TRUE(at_zero);
  EXPECT_EQ(at_zero->culprit, 0);
  const auto at_two = disagreement(std::vector{kThis, kThis, kLonger, kThis});
  ASSERT_TRUE(at_two);
  EXPECT_EQ(at_two->culprit, 2);
  EXPECT_EQ(at_two->reason,
            "ranks 0, 1 and 3 are about to run program 0000000000000abc, 2 steps under 'gloo'; "
            "rank 2 is about to run program 0000000000000abc, 3 steps under 'gloo': give all ranks "
            "the same input");
}

TEST(Agreement, IsWithRankZeroWhereAsManyAreAgainst) {
  EXPECT_EQ(disagreement(std::vector{kThis, kOther})->culprit, 1);
  EXPECT_EQ(disagreement(std::vector{kThis, kOther, kOther, kThis})->culprit, 1);
  EXPECT_EQ(disagreement(std::vector{kThis, kOther, kLonger})->culprit, 1);
}

TEST(Agreement, NamesAFewOfMany) {
  std::vector<Intent> intents(64, kThis);
  intents.back() = kOther;
  EXPECT_EQ(disagreement(intents)->culprit, 63);
  EXPECT_EQ(disagreement(intents)->reason.find("ranks 0, 1, 2, 3 and 59 more are about"), 0U);
}

TEST(Agreement, TravelsAsBytes) {
  EXPECT_EQ(intent_from_bytes(to_bytes(kLonger)), kLonger);
}

}  // namespace
}  // namespace counterflow::exec
