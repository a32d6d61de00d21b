#include "report/trace_layout.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/report_runs.h"

namespace counterflow {
namespace {

using testing::b;
using testing::f;
using testing::HandMade;
using Labels = std::vector<std::string>;

// The tracks of the slices, in their order.
std::vector<std::uint32_t> tracks_of(const TraceLayout& layout) {
  std::vector<std::uint32_t> tracks;
  for (const TraceLayout::Slice& slice : layout.slices) tracks.push_back(slice.track);
  return tracks;
}

TEST(TraceLayout, AStreamIsATrackWhereNothingOverlaps) {
  HandMade run = testing::two_ranks();
  const TraceLayout layout = lay_out_trace(run.program(), run.timeline());
  ASSERT_EQ(layout.tracks.size(), 2U);
  EXPECT_EQ(layout.tracks[0], (Labels{"compute", "second", "transfers"}));
  EXPECT_EQ(layout.slices.size(), 12U);
}

TEST(TraceLayout, WhatOverlapsOnAStreamGetsTracksOfItsOwnNextToIt) {
  HandMade run(1, 2, 5);
  run.send(0, 0, 0, 0, 0, 0, 10).send(0, 0, 0, 1, 1, 2, 12).send(0, 0, 0, 2, 2, 4, 6);
  run.send(0, 0, 0, 3, 3, 6, 20).send(0, 0, 0, 4, 4, 10, 15);
  const TraceLayout layout = lay_out_trace(run.program(), run.timeline());
  EXPECT_EQ(layout.tracks[0],
            (Labels{"compute", "second", "transfers", "transfers (2)", "transfers (3)"}));
  EXPECT_EQ(tracks_of(layout), (std::vector<std::uint32_t>{2, 3, 4, 4, 2}));
}

TEST(TraceLayout, EmptySlicesOverlapNothing) {
  HandMade run(1, 1, 3);
  run.run(0, f(0, 0), 0, 5).run(0, f(0, 1), 5, 5).run(0, f(0, 2), 5, 9).run(0, b(0, 2), 9, 9);
  const TraceLayout layout = lay_out_trace(run.program(), run.timeline());
  EXPECT_EQ(tracks_of(layout), (std::vector<std::uint32_t>{0, 0, 0, 0}));
}

TEST(TraceLayout, ASendStandsBeforeTheReceiveThatBeginsWithIt) {
  HandMade run(2, 2, 1);
  run.receive(0, 1, 1, 0, 0, 3, 8).send(1, 0, 0, 0, 0, 3, 8);
  const TraceLayout layout = lay_out_trace(run.program(), run.timeline());
  ASSERT_EQ(layout.slices.size(), 2U);
  EXPECT_EQ(layout.slices[0].rank, 1U);
  EXPECT_EQ(layout.slices[1].rank, 0U);
}

TEST(TraceLayout, WhatNeverRanIsLeftOut) {
  HandMade run(1, 1, 2);
  run.run(0, f(0, 0), 0, 5).run(0, f(0, 1), -1, -1);
  EXPECT_EQ(lay_out_trace(run.program(), run.timeline()).slices.size(), 1U);
}

}  // namespace
}  // namespace counterflow
