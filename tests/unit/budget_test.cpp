#include "scheduler/search/budget.h"

#include <gtest/gtest.h>

#include <chrono>

namespace counterflow {
namespace {

SearchBudget of_an_hour() {
  SearchBudget budget;
  budget.time = std::chrono::hours(1);
  return budget;
}

TEST(BudgetMeter, LeavesTimeForTheAnswer) {
  BudgetMeter meter(of_an_hour(), 10'000);
  EXPECT_LT(meter.share(), 0.5);
  meter.reserve(std::chrono::minutes(30));
  meter.reserve(std::chrono::minutes(10));  // the longest counts
  EXPECT_GE(meter.share(), 0.5);
  EXPECT_FALSE(meter.is_spent());
  meter.reserve(std::chrono::minutes(61));
  EXPECT_TRUE(meter.is_spent());
  EXPECT_EQ(meter.affords(Time{1}), 0);
}

TEST(BudgetMeter, ReservesNothingWhereAnAnswerTakesNoTime) {
  BudgetMeter few_ops(of_an_hour(), 100);
  few_ops.reserve(std::chrono::hours(2));
  EXPECT_FALSE(few_ops.is_spent());
  SearchBudget iterations;
  iterations.iterations = 10;
  BudgetMeter counted(iterations, 10'000);
  counted.reserve(std::chrono::hours(2));
  counted.spend();
  EXPECT_DOUBLE_EQ(counted.share(), 0.1);
}

TEST(BudgetMeter, OfIterationsTakesNoLookAtTheClock) {
  SearchBudget counted;
  counted.iterations = 10;
  BudgetMeter meter(counted, 100);
  EXPECT_FALSE(meter.is_timed());
  for (int i = 0; i < 7; ++i) meter.spend();
  EXPECT_DOUBLE_EQ(meter.share(), 0.7);
  EXPECT_TRUE(BudgetMeter(of_an_hour(), 100).is_timed());
}

TEST(BudgetMeter, OfNoIterationsIsSpentFromTheStart) {
  SearchBudget none;
  none.iterations = 10;
  none.most = 0;
  EXPECT_TRUE(BudgetMeter(none, 100).is_spent());
  EXPECT_TRUE(BudgetMeter(none, 100).is_at_most());
  none.most = 12;
  BudgetMeter meter(none, 100);
  for (int i = 0; i < 10; ++i) meter.spend();
  EXPECT_TRUE(meter.is_spent());
  EXPECT_FALSE(meter.is_at_most());  // two more may find a first order
}

}  // namespace
}  // namespace counterflow
