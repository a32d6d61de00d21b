#include "report/prediction_error.h"

#include <gtest/gtest.h>

#include <chrono>
#include <utility>
#include <vector>

namespace counterflow {
namespace {

using namespace std::chrono_literals;

// One rank, two forwards and a fused pair, one after the other.
Program three_runs() {
  Program program;
  program.stages = 1;
  program.microbatches = 2;
  program.kernels = {{.kind = OpKind::forward, .duration = 10ns},
                     {.kind = OpKind::forward, .paired_kind = OpKind::backward, .duration = 20ns}};
  RankProgram& rank = program.ranks.emplace_back();
  rank.streams = {{StreamRole::compute}};
  const Op f0{OpKind::forward, 0, 0, 0};
  const Op f1{OpKind::forward, 0, 0, 1};
  const Op b0{OpKind::backward, 0, 0, 0};
  rank.instructions = {
      {.kernel = 0, .op = f0}, {.kernel = 0, .op = f1}, {.kernel = 1, .op = f1, .paired = b0}};
  return program;
}

Timeline timeline(std::vector<Interval> intervals) {
  return {{RankTimeline{std::move(intervals), {}}}};
}

TEST(PredictionError, IsByKindAndOfTheMakespan) {
  const Program program = three_runs();
  const Timeline predicted = timeline({{0ns, 10ns}, {10ns, 20ns}, {20ns, 40ns}});
  const Timeline measured = timeline({{5ns, 16ns}, {16ns, 29ns}, {29ns, 44ns}});
  const PredictionError error = prediction_error(program, predicted, measured);
  EXPECT_EQ(error.predicted_makespan, 40ns);
  EXPECT_EQ(error.measured_makespan, 39ns);
  EXPECT_DOUBLE_EQ(error.makespan_error, 39.0 / 40 - 1);
  ASSERT_EQ(error.kinds.size(), 2U);
  EXPECT_EQ(error.kinds[0].kind, "F");
  EXPECT_EQ(error.kinds[0].count, 2);
  EXPECT_EQ(error.kinds[0].predicted, 10ns);
  EXPECT_EQ(error.kinds[0].measured, 12ns);
  EXPECT_DOUBLE_EQ(error.kinds[0].error, 24.0 / 20 - 1);
  EXPECT_EQ(error.kinds[0].largest_difference, 3ns);
  EXPECT_EQ(error.kinds[1].kind, "F+B");
  EXPECT_EQ(error.kinds[1].largest_difference, -5ns);
}

TEST(PredictionError, OfAPerfectPredictionIsNone) {
  const Program program = three_runs();
  const Timeline same = timeline({{0ns, 10ns}, {10ns, 20ns}, {20ns, 40ns}});
  for (const auto& kind : prediction_error(program, same, same).kinds) {
    EXPECT_EQ(kind.error, 0);
    EXPECT_EQ(kind.largest_difference, 0ns);
  }
}

}  // namespace
}  // namespace counterflow
