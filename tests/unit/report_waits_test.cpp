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

std::string refusal(const std::string& text) {
  try {
    (void)parse_timeline_json(text, "t.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Waits, ForWhatIsNotBeforeAreRefused) {
  for (const char* rows : {"[[0,0,0]]", "[[0,0,1]]", "[[1,0,1]]"}) {
    EXPECT_EQ(
        refusal(with_waits(std::string("\"waits\":") + rows)).find("t.json: ranks[0].waits[0]"), 0U)
        << rows;
  }
}

std::string timeline_of(HandMade run, std::vector<std::vector<Wait>> waits) {
  const Report report = run.report();
  Drawing drawing = make_drawing({run.program(), run.timeline(), report, {}});
  for (std::size_t r = 0; r < waits.size(); ++r) drawing.lanes[r].waits = std::move(waits[r]);
  return timeline_json(drawing);
}

TEST(Waits, ThatTheTimesBelieAreRefused) {
  // F 4 of rank 1 begins at 45 us; its receive 3, of 25 us, is made to end later.
  HandMade late = testing::two_ranks();
  late.timeline().ranks[1].instructions[3].end = Time{45'001};
  EXPECT_EQ(refusal(timeline_of(std::move(late), {})),
            "t.json: ranks[1].waits[3][2]: what it waits for ends at 45001 ns, after it began at "
            "45000 ns");
}

TEST(Waits, AnotherRanksComputeIsWaitedForByAMessageOnly) {
  EXPECT_NE(refusal(timeline_of(testing::two_ranks(), {{}, {{1, 0, 0}}})).find("only a transfer"),
            std::string::npos);
}

TEST(Waits, InACycleAreRefused) {
  // Each rank sends what the other has to receive first, all on one stream and at one instant.
  HandMade run(2, 2, 1);
  run.send(0, 1, 0, 0, 0, 0, 0).send(1, 0, 0, 0, 0, 0, 0);
  run.run(0, testing::f(0, 0), 0, 0).run(1, testing::f(1, 0), 0, 0);
  run.run(0, testing::b(0, 0), 0, 0).run(1, testing::b(1, 0), 0, 0);
  run.receive(0, 1, 1, 0, 0, 0, 0).receive(1, 0, 1, 0, 0, 0, 0);
  const std::vector<std::vector<Wait>> sane = {{{3, 1, 0}}, {{3, 0, 0}}};
  EXPECT_EQ(refusal(timeline_of(run, sane)), "accepted");
  // A receive for the other rank's receive, and the other way round, through what follows each.
  HandMade late = run;
  late.send(0, 1, 0, 0, 0, 0, 0).send(1, 0, 0, 0, 0, 0, 0);
  EXPECT_EQ(refusal(timeline_of(late, {{{3, 1, 4}, {4, 0, 3}}, {{3, 0, 4}, {4, 1, 3}}}))
                .find("t.json: ranks[0].instructions["),
            0U);
  EXPECT_EQ(refusal(timeline_of(late, {{{3, 1, 4}, {4, 0, 3}}, {{3, 0, 0}, {4, 1, 3}}})),
            "accepted");
}

}  // namespace
}  // namespace counterflow
