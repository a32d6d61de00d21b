#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/base64.h"
#include "report/columns.h"
#include "report/compare.h"
#include "report/drawing.h"
#include "report/gzip.h"
#include "report/palette.h"
#include "report/time_axis.h"
#include "scheduler/error.h"
#include "tests/support/cases.h"
#include "tests/unit/report_runs.h"

namespace counterflow {
namespace {

using nlohmann::json;
using testing::HandMade;

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t n = 0;
  for (auto at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

struct Example {
  HandMade run = testing::two_ranks();
  Report report = run.report();
  DrawContext context{run.program(), run.timeline(), report, {Bytes{300}, Bytes{300}}};
};

TEST(TimelineJson, ReadsBackToTheSameDrawing) {
  const Example example;
  const std::string text = timeline_json(example.context);
  const Drawing drawing = parse_timeline_json(text);
  EXPECT_EQ(timeline_json(drawing), text);
  EXPECT_EQ(drawing.lanes[1].boxes, make_drawing(example.context).lanes[1].boxes);
  EXPECT_EQ(drawing.lanes[1].memory_limit, Bytes{300});
}

TEST(TimelineJson, SaysWhatRanWhereAndWhen) {
  const Example example;
  const json document = json::parse(timeline_json(example.context));
  const json& rank = document["ranks"][1];
  EXPECT_EQ(document["columns"]["instructions"],
            json({"stream", "kind", "op", "begin_ns", "end_ns", "bytes"}));
  EXPECT_EQ(rank["instructions"][0], json({2, 1, "1RECV_F0", 0, 15'000, 4096}));
  EXPECT_EQ(rank["instructions"][1], json({0, 0, "1F0", 15'000, 25'000, 0}));
  EXPECT_EQ(rank["streams"][2], json({{"role", "p2p"}, {"label", "transfers"}}));
  EXPECT_EQ(rank["memory"][1], json({15'000, 100}));
  EXPECT_EQ(document["report"]["makespan_ns"], 100'000);
}

TEST(TimelineJson, APairIsWrittenAsBothItsOps) {
  HandMade run(1, 2, 2);
  run.pair(0, testing::f(0, 1), testing::b(1, 0), 0, 10);
  const Report report = run.report();
  const json document =
      json::parse(timeline_json(DrawContext{run.program(), run.timeline(), report, {}}));
  EXPECT_EQ(document["ranks"][0]["instructions"][0][2], "0F1;1B0");
}

TEST(TimelineJson, RefusesWhatItWouldNotWrite) {
  const Example example;
  const json good = json::parse(timeline_json(example.context));
  const auto refusal = [&](auto change) {
    json bad = good;
    change(bad);
    try {
      (void)parse_timeline_json(bad.dump(), "t.json");
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  const auto expect = [&](const char* said, auto change) {
    const std::string message = refusal(change);
    EXPECT_NE(message.find(said), std::string::npos) << message;
  };
  expect("ranks[0].instructions[0][4]", [](json& d) { d["ranks"][0]["instructions"][0][4] = -5; });
  expect("ranks[0].instructions[0][0]", [](json& d) { d["ranks"][0]["instructions"][0][0] = 3; });
  expect("ranks[0].instructions[0][2]", [](json& d) { d["ranks"][0]["instructions"][0][2] = ";"; });
  expect("ranks[1].memory[2][0]", [](json& d) { d["ranks"][1]["memory"][2][0] = 3; });
  expect("ranks[0].memory[0][1]: expected a whole number from 0",
         [](json& d) { d["ranks"][0]["memory"][0][1] = -1; });
  expect("99F0 is of stage 99, but the report has 2 stages",
         [](json& d) { d["ranks"][0]["instructions"][0][2] = "99F0"; });
  expect("0F2 is of microbatch 2, but the report has 2 microbatches",
         [](json& d) { d["ranks"][0]["instructions"][0][2] = "0F2"; });
  expect("as many ranks", [](json& d) { d["ranks"].erase(1); });
  expect("one entry for each of the ranks", [](json& d) { d["report"]["ranks"] = 3; });
  expect("the key \"report\" is missing", [](json& d) { d.erase("report"); });
  expect("schema_version", [](json& d) { d["schema_version"] = 2; });
}

TEST(TimelineJson, RefusesWhatContradictsItself) {
  const Example example;
  const json good = json::parse(timeline_json(example.context));
  const auto expect = [&](const char* said, auto change) {
    json bad = good;
    change(bad);
    try {
      (void)parse_timeline_json(bad.dump(), "t.json");
      ADD_FAILURE() << "accepted, and not: " << said;
    } catch (const InputError& error) {
      EXPECT_EQ(std::string(error.what()).find(std::string("t.json: ") + said), 0U) << error.what();
    }
  };
  // The report's figures, each by itself.
  expect("report.makespan_ns: is 1, but the timeline gives 100000",
         [](json& d) { d["report"]["makespan_ns"] = 1; });
  expect("report.span_ns", [](json& d) { d["report"]["span_ns"] = 1; });
  expect("report.bubble_fraction: is 0.5, but the timeline gives 0.4;",
         [](json& d) { d["report"]["bubble_fraction"] = 0.5; });
  expect("report.span_bubble_fraction", [](json& d) { d["report"]["span_bubble_fraction"] = 0.1; });
  expect("report.gap: is 0.5, but the makespan and the bound give 0.25;", [](json& d) {
    d["report"]["lower_bound_ns"] = 80'000;
    d["report"]["gap"] = 0.5;
  });
  for (const char* figure : {"busy_ns", "idle_ns", "first_start_ns", "peak_memory_bytes"}) {
    expect((std::string("report.per_rank[1].") + figure + ": ").c_str(), [&](json& d) {
      d["report"]["per_rank"][1][figure] = d["report"]["per_rank"][1][figure].get<int>() + 1;
    });
  }
  // The last compute of rank 0 goes on for ever; the report knows nothing of it.
  expect("ranks[0].instructions[5][4]: expected a whole number from 80000 to 4611686018427387904",
         [](json& d) { d["ranks"][0]["instructions"][5][4] = 9223372036854775807; });
  expect("report.per_rank[0].busy_ns: is 60000, but the timeline gives 60001",
         [](json& d) { d["ranks"][0]["instructions"][5][4] = 100'001; });
  // F1 of rank 0 begins within F0.
  expect("ranks[0].instructions[2][3]: begins at 9999 ns, before its stream is free at 10000 ns",
         [](json& d) { d["ranks"][0]["instructions"][2][3] = 9'999; });
  expect("ranks[0].instructions[5][4]: expected a whole number from -1 to -1, found 100000",
         [](json& d) { d["ranks"][0]["instructions"][5][3] = -1; });
}

TEST(TimelineJson, RefusesAKeyGivenTwice) {
  const Example example;
  const std::string good = timeline_json(example.context);
  for (const auto& [key, said] :
       {std::pair("\"makespan_ns\":", "t.json: report: the key \"makespan_ns\" is given twice"),
        std::pair("\"ranks\":[", "t.json: the key \"ranks\" is given twice"),
        std::pair("\"memory\":[[", "t.json: ranks: the key \"memory\" is given twice")}) {
    std::string bad = good;
    bad.insert(bad.find(key),
               std::string(key) + "1" + (std::string(key).back() == '[' ? "]," : ","));
    if (std::string(key).ends_with("[[")) bad.insert(bad.find("1],") + 1, "]");
    try {
      (void)parse_timeline_json(bad, "t.json");
      ADD_FAILURE() << "accepted: " << said;
    } catch (const InputError& error) {
      EXPECT_EQ(std::string(error.what()).find(said), 0U) << error.what();
    }
  }
}

TEST(TimelineJson, SurvivesEveryHurtByte) {
  const Example example;
  const std::string text = timeline_json(example.context);
  constexpr std::size_t kEvery = testing::kSanitized ? 11 : 1;
  for (std::size_t at = 0; at < text.size(); at += kEvery) {
    std::string hurt = text;
    hurt[at] = '9';
    try {
      (void)parse_timeline_json(hurt);
    } catch (const InputError&) {
      continue;
    }
  }
  SUCCEED();
}

TEST(TimelineSvg, ShowsHeadlineLanesLegendAndMemory) {
  const Example example;
  const std::string svg = timeline_svg(example.context);
  for (const char* part : {"makespan 100 us", "bubble 40.00 %", "rank 0", "rank 1", ">forward<",
                           ">backward<", "its limit of 300 B", "class=\"memory\"",
                           "class=\"limit\"", "class=\"peak\"", "0F1, 10 us from 10 us"}) {
    EXPECT_NE(svg.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(count(svg, "<title>"), 8U);  // one an op, none for transfers
}

TEST(TimelineSvg, AFusedPairIsTwoHalves) {
  HandMade run(1, 2, 2);
  run.pair(0, testing::f(0, 1), testing::b(1, 0), 0, 10);
  const Report report = run.report();
  const std::string svg = timeline_svg(DrawContext{run.program(), run.timeline(), report, {}});
  EXPECT_EQ(count(svg, "0F1 with 1B0"), 2U);
  EXPECT_NE(svg.find("fused pair"), std::string::npos);
}

TEST(TimelineSvg, StaysSmallForHugeRuns) {
  Drawing drawing;
  constexpr int kRanks = 64;
  constexpr int kOps = 4000;
  drawing.report.per_rank.resize(kRanks);
  for (int r = 0; r < kRanks; ++r) {
    Lane lane;
    lane.streams = {{StreamRole::compute, 0, "compute"}};
    for (std::uint32_t k = 0; k < kOps; ++k) {
      lane.ops.push_back(testing::f(r, static_cast<int>(k)));
      lane.boxes.push_back(
          {{Time{k * 10}, Time{k * 10 + 10}}, InstructionKind::run, 0, {k, 1}, {}});
      lane.memory.push_back({Time{k * 10}, Bytes{k % 7}});
    }
    drawing.lanes.push_back(std::move(lane));
  }
  const std::string svg = timeline_svg(drawing);
  EXPECT_LT(count(svg, "<rect"), 60'000U);
  EXPECT_LT(svg.size(), 10'000'000U);
}

TEST(TimelineSvg, AnEmptyRunIsStillAPicture) {
  HandMade run(1, 1, 1);
  const Report report = run.report();
  const std::string svg = timeline_svg(DrawContext{run.program(), run.timeline(), report, {}});
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_NE(svg.find("</svg>"), std::string::npos);
}

TEST(TimelineHtml, IsOnePageWithItsData) {
  Example example;
  example.report.schedule = "<b>&";
  const std::string html = timeline_html(example.context);
  EXPECT_EQ(html.find("{{"), std::string::npos) << html.substr(html.find("{{"), 40);
  EXPECT_EQ(count(html, "http"), count(html, "http://www.w3.org/2000/svg"));
  EXPECT_NE(html.find(base64(gzip(encode_columns(make_drawing(example.context))))),
            std::string::npos);
  EXPECT_NE(html.find("<title>&lt;b>&amp; - counterflow</title>"), std::string::npos);
  EXPECT_EQ(html.find("<b>&"), std::string::npos);
}

TEST(Axis, TicksAreRoundAndNameTheirUnitOnce) {
  const auto labels = [](std::int64_t from, std::int64_t to) {
    std::string text;
    for (const Tick& tick : ticks(Time{from}, Time{to}, 5)) text += tick.label + "|";
    return text;
  };
  EXPECT_EQ(labels(0, 66'000'000), "0|20|40|60 ms|");
  EXPECT_EQ(labels(0, 1'300'000'000), "0.0|0.5|1.0 s|");
  EXPECT_EQ(labels(0, 7), "0|2|4|6 ns|");
  EXPECT_EQ(labels(-15, 40), "0|20|40 ns|");
  EXPECT_EQ(labels(0, 0), "0 ns|");
}

TEST(Palette, ShadesTellChunksApart) {
  Lane lane;
  lane.streams = {{StreamRole::compute, 0, "compute"}};
  lane.ops = {testing::f(0, 0), testing::f(4, 0)};
  lane.boxes = {{{Time{0}, Time{1}}, InstructionKind::run, 0, {0, 1}, {}},
                {{Time{1}, Time{2}}, InstructionKind::run, 0, {1, 1}, {}}};
  const LaneColours colours(lane);
  EXPECT_EQ(colours.of(testing::f(0, 5)), base_colour(OpKind::forward));
  EXPECT_NE(colours.of(testing::f(4, 5)), base_colour(OpKind::forward));
  EXPECT_EQ(colours.lighter(), "later chunk");
}

TEST(Compare, TellsRunsApart) {
  const Example example;
  std::vector<NamedRun> runs = {{"first", make_drawing(example.context)},
                                {"second", make_drawing(example.context)}};
  runs[1].drawing.report.makespan = Time{150'000};
  const std::string table = compare_table(runs);
  EXPECT_NE(table.find("first"), std::string::npos);
  EXPECT_NE(table.find("1.500"), std::string::npos) << table;
  const json document = json::parse(compare_json(runs));
  EXPECT_EQ(document["runs"][1]["name"], "second");
  EXPECT_EQ(document["runs"][1]["relative_makespan"], 1.5);
  EXPECT_EQ(document["runs"][0]["report"]["makespan_ns"], 100'000);
  EXPECT_EQ(document["runs"][0]["ranks"], 2);
  EXPECT_EQ(document["runs"][0]["stages"], 2);
  EXPECT_EQ(document["runs"][0]["stages_per_rank"], 1);
  EXPECT_NE(table.find("ranks  stages  stages/rank"), std::string::npos) << table;
  // What a step takes: none here, with an optimizer, and of several.
  EXPECT_FALSE(document["runs"][0].contains("step_ns"));
  runs[0].drawing.report.step = Time{120'000};
  runs[1].drawing.report.step = Time{130'000};
  runs[1].drawing.report.consecutive = ConsecutiveSteps{3, Time{250'000}, Time{75'000}, {}};
  const std::string steps = compare_table(runs);
  EXPECT_NE(steps.find("      step"), std::string::npos) << steps;
  EXPECT_NE(steps.find("120 us"), std::string::npos) << steps;
  EXPECT_NE(steps.find("75 us"), std::string::npos) << steps;
  EXPECT_EQ(steps.find("130 us"), std::string::npos) << steps;
  const json stepped = json::parse(compare_json(runs));
  EXPECT_EQ(stepped["runs"][0]["step_ns"], 120'000);
  EXPECT_EQ(stepped["runs"][1]["step_ns"], 75'000);
  const std::string html = compare_html(runs);
  EXPECT_EQ(count(html, "\"name\":\"first\""), 1U);
  EXPECT_EQ(count(html, "\"name\":\"second\""), 1U);
}

}  // namespace
}  // namespace counterflow
