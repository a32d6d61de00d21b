#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "tests/unit/report_runs.h"

namespace counterflow {
namespace {

using nlohmann::json;

struct Trace {
  testing::HandMade run = testing::two_ranks();
  Report report = run.report();
  std::string text = trace_json(DrawContext{run.program(), run.timeline(), report, {}});
  json events = json::parse(text)["traceEvents"];

  [[nodiscard]] std::vector<json> with_phase(const char* phase) const {
    std::vector<json> found;
    for (const json& event : events) {
      if (event["ph"] == phase) found.push_back(event);
    }
    return found;
  }
};

TEST(TraceJson, AProcessARankAndAThreadAStream) {
  const Trace trace;
  std::map<std::string, int> names;
  for (const json& event : trace.with_phase("M")) ++names[event["name"].get<std::string>()];
  EXPECT_EQ(names["process_name"], 2);
  EXPECT_EQ(names["thread_name"], 6);
  EXPECT_NE(trace.text.find(R"("args":{"name":"rank 1"})"), std::string::npos);
}

TEST(TraceJson, EveryInstructionIsASliceInExactMicroseconds) {
  const Trace trace;
  EXPECT_EQ(trace.with_phase("X").size(), 12U);
  EXPECT_NE(trace.text.find(R"("ts":15,"dur":10,"name":"1F0","cat":"forward",)"
                            R"("args":{"stage":1,"microbatch":0})"),
            std::string::npos)
      << trace.text;
}

TEST(TraceJson, NanosecondsAreNotRounded) {
  testing::HandMade run(1, 1, 1);
  run.run(0, testing::f(0, 0), 18'522'001, 18'522'008);
  const Report report = run.report();
  const std::string text = trace_json(DrawContext{run.program(), run.timeline(), report, {}});
  EXPECT_NE(text.find(R"("ts":18522.001,"dur":0.007)"), std::string::npos) << text;
}

TEST(TraceJson, AnArrowToAReceivePostedEarlyEndsWhereTheMessageLeaves) {
  const Trace trace;
  const json end = trace.with_phase("f").front();
  EXPECT_EQ(end["ts"], 10);  // posted at 0, sent at 10
}

TEST(TraceJson, AnArrowFromEachSendToItsReceive) {
  const Trace trace;
  const auto starts = trace.with_phase("s");
  const auto ends = trace.with_phase("f");
  ASSERT_EQ(starts.size(), 2U);
  ASSERT_EQ(ends.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(starts[i]["id"], ends[i]["id"]);
    EXPECT_EQ(starts[i]["pid"], 0);
    EXPECT_EQ(ends[i]["pid"], 1);
    EXPECT_LE(starts[i]["ts"], ends[i]["ts"]);
  }
}

TEST(TraceJson, MemoryIsACounter) {
  const Trace trace;
  const auto counters = trace.with_phase("C");
  ASSERT_EQ(counters.size(), 7U);
  EXPECT_EQ(counters[1]["args"]["bytes"], 200);
}

TEST(TraceJson, StaysUnder120BytesAnEvent) {
  const Trace trace;
  EXPECT_LT(trace.text.size(), 120 * trace.events.size());
}

TEST(TraceJson, PairsCollectivesAndStepEndsHaveTheirNames) {
  testing::HandMade run(1, 2, 2);
  run.pair(0, testing::f(0, 1), testing::b(1, 0, 1), 0, 10);
  run.collective(0, testing::op_of(OpKind::reduce_gradients, 1, 0), 10, 20).step_end(0, 20);
  const Report report = run.report();
  const json trace =
      json::parse(trace_json(DrawContext{run.program(), run.timeline(), report, {}}));
  std::map<std::string, json> slices;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "X") slices[event["name"].get<std::string>()] = event;
  }
  ASSERT_EQ(slices.size(), 3U);
  EXPECT_EQ(slices["0F1&~1B0"]["args"]["paired_stage"], 1);
  EXPECT_EQ(slices["1REDUCE_GRAD"]["cat"], "reduce_scatter");
  EXPECT_EQ(slices["1REDUCE_GRAD"]["args"]["bytes"], 64);
  EXPECT_EQ(slices.count("step end"), 1U);
}

TEST(TraceJson, WhatNeverRanIsLeftOut) {
  testing::HandMade run(1, 1, 2);
  run.run(0, testing::f(0, 0), 0, 5).run(0, testing::f(0, 1), -1, -1);
  const Report report = run.report();
  const std::string text = trace_json(DrawContext{run.program(), run.timeline(), report, {}});
  EXPECT_EQ(text.find("0F1"), std::string::npos);
  const std::string packets =
      trace_perfetto(DrawContext{run.program(), run.timeline(), report, {}});
  EXPECT_NE(packets.find("0F0"), std::string::npos);
  EXPECT_EQ(packets.find("0F1"), std::string::npos);
}

}  // namespace
}  // namespace counterflow
