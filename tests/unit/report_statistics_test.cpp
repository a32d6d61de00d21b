#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/unit/report_runs.h"

namespace counterflow {
namespace {

using testing::b;
using testing::f;
using testing::HandMade;
using testing::i;
using testing::kSecondStream;
using testing::op_of;
using testing::w;

TEST(Statistics, MeasuresTwoRanksByHand) {
  const Report report = testing::two_ranks().report();
  EXPECT_EQ(report.ranks, 2);
  EXPECT_EQ(report.stages, 2);
  EXPECT_EQ(report.microbatches, 2);
  EXPECT_EQ(report.makespan, Time{100'000});
  EXPECT_EQ(report.span, Time{100'000});             // rank 0: 0 to 100 us
  EXPECT_EQ(report.per_rank[0].busy, Time{60'000});  // 10 + 10 + 20 + 20
  EXPECT_EQ(report.per_rank[1].busy, Time{60'000});
  EXPECT_EQ(report.per_rank[0].idle, Time{40'000});
  EXPECT_EQ(report.per_rank[1].first_start, Time{15'000});
  EXPECT_EQ(report.per_rank[1].last_end, Time{75'000});
  EXPECT_DOUBLE_EQ(report.bubble_fraction, 0.4);       // 1 - 120 / (2 * 100)
  EXPECT_DOUBLE_EQ(report.span_bubble_fraction, 0.4);  // (100 - 60) / 100, rank 0
  EXPECT_EQ(report.per_rank[0].peak_activations, 2);
  EXPECT_EQ(report.per_rank[1].peak_activations, 1);
  EXPECT_EQ(report.per_rank[0].peak_memory, Bytes{200});
  EXPECT_EQ(report.per_rank[1].peak_memory, Bytes{100});
}

TEST(Statistics, MakespanCountsFromTheFirstStart) {
  const Report report = HandMade(2, 2, 1).run(0, f(0, 0), 50, 60).run(1, f(1, 0), 70, 90).report();
  EXPECT_EQ(report.makespan, Time{40});
  EXPECT_EQ(report.span, Time{20});
  EXPECT_DOUBLE_EQ(report.bubble_fraction, 1 - 30.0 / 80);
  EXPECT_DOUBLE_EQ(report.span_bubble_fraction, 0);
}

TEST(Statistics, SpanBubbleIsThatOfTheLongestRank) {
  HandMade run(2, 2, 2);
  run.run(0, f(0, 0), 0, 10).run(0, b(0, 0), 90, 100);
  run.run(1, f(1, 0), 10, 20).run(1, b(1, 0), 60, 70);
  const Report report = run.report();
  EXPECT_EQ(report.span, Time{100});
  EXPECT_DOUBLE_EQ(report.span_bubble_fraction, 0.8);
}

TEST(Statistics, BusyIsTheUnionOfComputeStreams) {
  HandMade run(1, 1, 2);
  run.run(0, f(0, 0), 0, 10).run(0, f(0, 1), 5, 20, kSecondStream).run(0, b(0, 0), 30, 40);
  EXPECT_EQ(run.report().per_rank[0].busy, Time{30});
}

TEST(Statistics, WhatFollowsThePipelineIsNotInTheMakespan) {
  HandMade run(1, 1, 1);
  run.run(0, f(0, 0), 0, 10).run(0, b(0, 0), 10, 30);
  run.collective(0, op_of(OpKind::reduce_gradients, 0, 0), 30, 80).step_end(0, 90);
  EXPECT_EQ(run.report().makespan, Time{30});
  EXPECT_EQ(run.report().per_rank[0].busy, Time{30});
}

TEST(Statistics, AnInstructionThatNeverRanIsLeftOut) {
  HandMade run(1, 1, 2);
  run.run(0, f(0, 0), 0, 10).run(0, f(0, 1), -1, -1);
  EXPECT_EQ(run.report().makespan, Time{10});
  EXPECT_EQ(run.report().per_rank[0].peak_activations, 1);
}

TEST(Statistics, ARankWithoutComputeIsIdleThroughout) {
  HandMade run(2, 1, 1);
  run.run(0, f(0, 0), 20, 30);
  const Report report = run.report();
  EXPECT_EQ(report.makespan, Time{10});
  EXPECT_EQ(report.per_rank[1].idle, Time{10});
  EXPECT_DOUBLE_EQ(report.bubble_fraction, 0.5);
}

TEST(Statistics, AnEmptyProgramHasNoFigures) {
  const Report report = HandMade(1, 1, 1).report();
  EXPECT_EQ(report.makespan, Time{0});
  EXPECT_EQ(report.bubble_fraction, 0);
  EXPECT_EQ(report.span_bubble_fraction, 0);
}

TEST(Statistics, RefusesTheTimelineOfAnotherProgram) {
  HandMade run = testing::two_ranks();
  run.timeline().ranks[1].instructions.pop_back();
  EXPECT_THROW((void)run.report(), std::invalid_argument);
}

TEST(PeakActivations, SplitBackwardHoldsUntilTheLaterHalf) {
  HandMade run(1, 1, 3);
  run.run(0, f(0, 0), 0, 10).run(0, i(0, 0), 10, 20);
  run.run(0, f(0, 1), 20, 30).run(0, i(0, 1), 30, 40);
  run.run(0, f(0, 2), 40, 50);
  run.run(0, w(0, 0), 50, 60).run(0, w(0, 1), 60, 70);
  run.run(0, i(0, 2), 70, 80).run(0, w(0, 2), 80, 90);
  EXPECT_EQ(run.report().per_rank[0].peak_activations, 3);
  EXPECT_EQ(run.report().per_rank[0].peak_in_flight, 1);
}

TEST(PeakActivations, WBeforeIReleasesAtI) {
  HandMade run(1, 1, 2);
  run.run(0, f(0, 0), 0, 10).run(0, w(0, 0), 10, 20);
  run.run(0, f(0, 1), 20, 30).run(0, i(0, 0), 30, 40);
  run.run(0, i(0, 1), 40, 50).run(0, w(0, 1), 50, 60);
  EXPECT_EQ(run.report().per_rank[0].peak_activations, 2);
}

TEST(PeakActivations, WhatEndsAtAnInstantGoesBeforeWhatBegins) {
  HandMade run(1, 1, 2);
  run.run(0, f(0, 0), 0, 10).run(0, b(0, 0), 10, 20).run(0, f(0, 1), 20, 30);
  EXPECT_EQ(run.report().per_rank[0].peak_activations, 1);
}

TEST(PeakActivations, AFrozenStageReleasesAtI) {
  HandMade run(1, 2, 2);  // stage 1 is trainable, stage 0 has no W
  run.run(0, f(0, 0), 0, 10).run(0, i(0, 0), 10, 20).run(0, f(0, 1), 20, 30);
  run.run(0, f(1, 0), 30, 40).run(0, i(1, 0), 40, 50).run(0, f(1, 1), 50, 60);
  run.run(0, i(1, 1), 60, 70).run(0, i(0, 1), 70, 80);
  // Before the last two, stage 0 holds microbatch 1; stage 1 holds both.
  EXPECT_EQ(run.report().per_rank[0].peak_activations, 2);
  run.run(0, w(1, 0), 80, 90);
  EXPECT_EQ(run.report().per_rank[0].peak_activations, 3);
}

TEST(PeakActivations, WithoutBackwardAnActivationGoesWithItsForward) {
  HandMade run(1, 1, 3);
  run.run(0, f(0, 0), 0, 10).run(0, f(0, 1), 10, 20).run(0, f(0, 2), 20, 30);
  EXPECT_EQ(run.report().per_rank[0].peak_activations, 1);
  EXPECT_EQ(run.report().per_rank[0].peak_in_flight, 1);
}

TEST(PeakActivations, AMicrobatchWithoutBackwardGoesWithItsForward) {
  HandMade run(1, 1, 4);
  run.run(0, f(0, 0), 0, 10).run(0, f(0, 1), 10, 20).run(0, f(0, 2), 20, 30);
  run.run(0, b(0, 2), 30, 40).run(0, f(0, 3), 40, 50);
  EXPECT_EQ(run.report().per_rank[0].peak_activations, 1);
  EXPECT_EQ(run.report().per_rank[0].peak_in_flight, 1);
}

TEST(PeakActivations, AFusedPairHoldsItsForwardFromTheBegin) {
  HandMade run(1, 1, 3);
  run.run(0, f(0, 0), 0, 10).pair(0, f(0, 1), b(0, 0), 10, 40).pair(0, f(0, 2), b(0, 1), 40, 70);
  EXPECT_EQ(run.report().per_rank[0].peak_activations, 2);
}

TEST(PeakActivations, CountsEveryStageAndReplicaOfARank) {
  HandMade run(1, 2, 2);
  run.run(0, f(0, 0), 0, 10).run(0, f(1, 0), 10, 20).run(0, f(1, 1, 1), 20, 30);
  run.run(0, b(0, 0), 30, 40).run(0, b(1, 0), 40, 50).run(0, b(1, 1, 1), 50, 60);
  EXPECT_EQ(run.report().per_rank[0].peak_activations, 3);
}

TEST(ExposedCommunication, CountsTheGapWhileTheMessageFlew) {
  HandMade run(2, 2, 2);
  run.run(0, f(0, 0), 0, 10).send(0, 1, 0, 0, 0, 10, 25);
  run.run(1, f(1, 1), 0, 5);
  run.receive(1, 0, 1, 0, 0, 0, 25).run(1, f(1, 0), 25, 35).waits(1);
  // The gap is 5..25; until 10 there was nothing to wait for but the sender.
  EXPECT_EQ(run.report().per_rank[1].comm_exposed, Time{15});
  EXPECT_EQ(run.report().per_rank[0].comm_exposed, Time{0});
}

TEST(ExposedCommunication, BeginsWithTheGap) {
  HandMade run(2, 2, 2);
  run.run(0, f(0, 0), 0, 10).send(0, 1, 0, 0, 0, 10, 40);
  run.run(1, f(1, 1), 0, 30);
  run.receive(1, 0, 1, 0, 0, 0, 40).run(1, f(1, 0), 45, 55).waits(1);
  EXPECT_EQ(run.report().per_rank[1].comm_exposed, Time{10});  // 30..40
}

TEST(ExposedCommunication, NothingIsExposedBeforeTheFirstOpOrWithoutAGap) {
  EXPECT_EQ(testing::two_ranks().report().per_rank[1].comm_exposed, Time{0});
}

TEST(ExposedCommunication, AReceiveOnTheComputeStreamIsWaitedForToo) {
  HandMade run(2, 2, 2);
  run.run(0, f(0, 0), 0, 10).send(0, 1, 0, 0, 0, 10, 25);
  run.run(1, f(1, 1), 0, 5).receive(1, 0, 1, 0, 0, 5, 25).run(1, f(1, 0), 25, 35);
  EXPECT_EQ(run.report().per_rank[1].comm_exposed, Time{0});  // on another stream, no event
  for (Instruction& instruction : run.at(1).instructions) instruction.stream = 0;
  EXPECT_EQ(run.report().per_rank[1].comm_exposed, Time{15});
}

TEST(ExposedCommunication, AReceiveNobodySendsExposesNothing) {
  HandMade run(2, 2, 2);
  run.run(1, f(1, 1), 0, 5).receive(1, 0, 1, 0, 7, 0, 25).run(1, f(1, 0), 25, 35).waits(1);
  EXPECT_EQ(run.report().per_rank[1].comm_exposed, Time{0});
}

}  // namespace
}  // namespace counterflow
