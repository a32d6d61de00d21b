#include <gtest/gtest.h>

#include "report/drawing.h"
#include "report/waits.h"
#include "scheduler/error.h"
#include "tests/unit/report_runs.h"

namespace counterflow {
namespace {

using testing::HandMade;

TEST(Waits, AReceiveWaitsForItsSendAndAnOpForItsEvent) {
  const HandMade run = testing::two_ranks();
  const auto waits = waits_of(HandMade(run).program());
  ASSERT_EQ(waits.size(), 2U);
  EXPECT_TRUE(waits[0].empty());
  // Rank 1: receive 0, F 1, B 2, receive 3, F 4; rank 0 sends with its instructions 1 and 3.
  EXPECT_EQ(waits[1], (std::vector<Wait>{{0, 0, 1}, {1, 1, 0}, {3, 0, 3}, {4, 1, 3}}));
}

TEST(Waits, StandInTimelineJson) {
  HandMade run = testing::two_ranks();
  const Report report = run.report();
  const Drawing drawing = make_drawing({run.program(), run.timeline(), report, {}});
  EXPECT_EQ(parse_timeline_json(timeline_json(drawing)).lanes[1].waits, drawing.lanes[1].waits);
}

std::string with_waits(const std::string& rows) {
  HandMade run(1, 1, 1);
  run.run(0, testing::f(0, 0), 0, 1).run(0, testing::b(0, 0), 1, 2);
  const Report report = run.report();
  std::string text = timeline_json({run.program(), run.timeline(), report, {}});
  const std::string none = "\"waits\":[]";
  return text.replace(text.find(none), none.size(), rows);
}

TEST(Waits, OldFilesHaveNone) {
  const std::string text = with_waits("\"more\":[]");
  EXPECT_TRUE(parse_timeline_json(text).lanes[0].waits.empty());
}

TEST(Waits, ThatNameNothingAreRefused) {
  EXPECT_EQ(parse_timeline_json(with_waits("\"waits\":[[1,0,0]]")).lanes[0].waits.size(), 1U);
  for (const char* rows : {"[[2,0,0]]", "[[1,1,0]]", "[[1,0,2]]", "[[1,0]]", "[[1,0,0],[0,0,1]]"}) {
    EXPECT_THROW((void)parse_timeline_json(with_waits(std::string("\"waits\":") + rows)),
                 InputError)
        << rows;
  }
}

}  // namespace
}  // namespace counterflow
