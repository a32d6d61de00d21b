#include "report/report_json.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "report/format.h"
#include "report/json/writer.h"
#include "scheduler/error.h"
#include "tests/unit/report_runs.h"

namespace counterflow {
namespace {

using Json = nlohmann::ordered_json;

Report example() {
  Report report = testing::two_ranks().report();
  report.schedule = "1f1b";
  report.execution = "ideal";
  report.lower_bound = Time{80'000};
  report.gap = 0.25;
  report.bound_argument = "jackson";
  report.notes = {"found by hand"};
  report.warnings = {"a \"quoted\" <warning>"};
  return report;
}

std::vector<std::string> keys(const Json& object) {
  std::vector<std::string> names;
  for (const auto& member : object.items()) names.push_back(member.key());
  return names;
}

TEST(ReportJson, HasTheKeysInOrder) {
  Report report = example();
  report.formula_idle = Time{30'000};
  report.formula_source = "GPipe, section 2";
  const Json json = Json::parse(to_json(report));
  EXPECT_EQ(keys(json), (std::vector<std::string>{
                            "schema_version", "schedule", "ranks", "stages", "microbatches",
                            "execution", "makespan_ns", "span_ns", "bubble_fraction",
                            "span_bubble_fraction", "lower_bound_ns", "lower_bound_by", "gap",
                            "formula", "notes", "warnings", "per_rank"}));
  EXPECT_EQ(keys(json["per_rank"][0]),
            (std::vector<std::string>{"busy_ns", "idle_ns", "first_start_ns", "last_end_ns",
                                      "peak_activations", "peak_in_flight", "peak_memory_bytes",
                                      "comm_exposed_ns", "stages_held"}));
  EXPECT_EQ(json["formula"]["idle_ns"], 30'000);
  EXPECT_EQ(json["formula"]["source"], "GPipe, section 2");
  EXPECT_EQ(json["makespan_ns"], 100'000);
  EXPECT_EQ(json["bubble_fraction"], 0.4);
  EXPECT_EQ(json["gap"], 0.25);
  EXPECT_EQ(json["lower_bound_by"], "jackson");
  EXPECT_EQ(json["notes"], Json::array({"found by hand"}));
  EXPECT_EQ(json["warnings"][0], "a \"quoted\" <warning>");
  EXPECT_EQ(json["per_rank"][1]["first_start_ns"], 15'000);
}

TEST(ReportJson, HasConsecutiveStepsWhereTheyWereRun) {
  Report report = example();
  EXPECT_FALSE(Json::parse(to_json(report)).contains("consecutive_steps"));
  report.consecutive = ConsecutiveSteps{3, Time{250'000}, Time{75'000}, {Bytes{5}, Bytes{7}}};
  const Json steps = Json::parse(to_json(report))["consecutive_steps"];
  EXPECT_EQ(keys(steps), (std::vector<std::string>{"steps", "makespan_ns", "steady_step_ns",
                                                   "peak_memory_bytes"}));
  EXPECT_EQ(steps["steps"], 3);
  EXPECT_EQ(steps["makespan_ns"], 250'000);
  EXPECT_EQ(steps["steady_step_ns"], 75'000);
  EXPECT_EQ(steps["peak_memory_bytes"], (std::vector<int>{5, 7}));
  const std::string text = summary(report);
  EXPECT_NE(text.find("steady step          75 us   of 3 consecutive ones, all 250 us"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("over all steps, by rank 1"), std::string::npos) << text;
}

TEST(ReportJson, LeavesOutAFormulaNobodyPublished) {
  EXPECT_FALSE(Json::parse(to_json(example())).contains("formula"));
}

TEST(ReportJson, FractionsStayFractions) {
  Report report = example();
  report.gap = 0;
  EXPECT_TRUE(Json::parse(to_json(report))["gap"].is_number_float());
}

TEST(ReportJson, ReadsBackToTheSameBytes) {
  Report report = example();
  report.formula_idle = Time{1};
  report.formula_source = "x";
  report.step = Time{110'000};
  report.consecutive = ConsecutiveSteps{3, Time{250'000}, Time{75'000}, {Bytes{5}, Bytes{7}}};
  const std::string text = to_json(report);
  const nlohmann::json document = json::parse(text, "report.json");
  EXPECT_EQ(to_json(read_report(json::Node(document, "report.json"))), text);
}

TEST(ReportJson, ConsecutiveStepsAreOfAllRanks) {
  Report report = example();
  report.consecutive = ConsecutiveSteps{3, Time{250'000}, Time{75'000}, {Bytes{5}}};
  const nlohmann::json document = json::parse(to_json(report), "r.json");
  try {
    (void)read_report(json::Node(document, "r.json"));
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("consecutive_steps.peak_memory_bytes: "),
              std::string::npos)
        << error.what();
  }
}

TEST(ReportJson, ReadingNamesThePlaceOfAWrongValue) {
  nlohmann::json document = nlohmann::json::parse(to_json(example()));
  document["per_rank"][1]["busy_ns"] = "ten";
  try {
    (void)read_report(json::Node(document, "r.json"));
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("r.json: per_rank[1].busy_ns: "), std::string::npos)
        << error.what();
  }
}

// A value is named by where it stands, also where others are equal to it.
TEST(JsonNode, NamesThePathOfWhatIsWrong) {
  const nlohmann::json document = json::parse(
      R"({"a": [], "b": {}, "c": [[], [{"d": 1}, {"d": 1, "e": [2, 2]}], 1], "f": 1})", "x.json");
  const json::Node root(document, "x.json");
  const auto said = [](const json::Node& node) {
    try {
      (void)node.text();
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const auto c = root.at("c").at(std::size_t{1});
  EXPECT_EQ(said(root), "x.json: expected a string, found an object");
  EXPECT_EQ(said(root.at("a")), "x.json: a: expected a string, found an array of 0");
  EXPECT_EQ(said(root.at("b")), "x.json: b: expected a string, found an object");
  EXPECT_EQ(said(root.at("c").at(std::size_t{0})),
            "x.json: c[0]: expected a string, found an array of 0");
  EXPECT_EQ(said(c.at(std::size_t{1}).at("d")), "x.json: c[1][1].d: expected a string, found 1");
  EXPECT_EQ(said(c.at(std::size_t{1}).at("e").at(1)),
            "x.json: c[1][1].e[1]: expected a string, found 2");
  EXPECT_EQ(said(root.at("c").at(2)), "x.json: c[2]: expected a string, found 1");
  EXPECT_EQ(said(root.at("f")), "x.json: f: expected a string, found 1");
  const nlohmann::json scalar = 5;
  EXPECT_EQ(said(json::Node(scalar, "x.json")), "x.json: expected a string, found 5");
}

TEST(JsonText, EscapesWhatHtmlAndJsonCannotHold) {
  std::string out;
  json::append_quoted(out, std::string_view("</script>\n\"\xff"));
  EXPECT_EQ(out, "\"\\u003c/script>\\n\\\"\xef\xbf\xbd\"");
}

TEST(JsonText, NumbersReadBackExactly) {
  std::string out;
  json::append(out, 0.1 + 0.2);
  EXPECT_EQ(std::stod(out), 0.1 + 0.2);
  out.clear();
  json::append(out, std::numeric_limits<double>::infinity());
  EXPECT_EQ(out, "null");
}

TEST(Readable, FourDigitsAndAUnit) {
  EXPECT_EQ(readable_time(Time{18'522'000}), "18.52 ms");
  EXPECT_EQ(readable_time(Time{66'000'000}), "66 ms");
  EXPECT_EQ(readable_time(Time{999}), "999 ns");
  EXPECT_EQ(readable_time(Time{0}), "0 ns");
  EXPECT_EQ(readable_time(Time{1'334'567'000}), "1.335 s");
  EXPECT_EQ(readable_time(Time{-2'500}), "-2.5 us");
  EXPECT_EQ(readable_bytes(Bytes{1536}), "1.5 KiB");
  EXPECT_EQ(readable_bytes(Bytes{40LL << 30U}), "40 GiB");
  EXPECT_EQ(readable_share(0.0847), "8.47 %");
}

TEST(Summary, NamesTheFiguresAndEveryRank) {
  const std::string text = summary(example());
  for (const char* part : {"1f1b", "2 ranks", "makespan", "100 us", "40.00 %", "lower bound 80 us",
                           "(jackson)", "gap 25.00 %", "note: found by hand", "warning: a"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  EXPECT_EQ(text.find("formula"), std::string::npos);
}

TEST(Summary, LeavesOutTheMiddleOfManyRanks) {
  Report report = example();
  report.per_rank.resize(64);
  report.ranks = 64;
  const std::string text = summary(report);
  EXPECT_NE(text.find("ranks 8 to 59 left out"), std::string::npos) << text;
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 25);
}

}  // namespace
}  // namespace counterflow
