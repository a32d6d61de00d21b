#include <gtest/gtest.h>

#include <string>

#include "report/frontier.h"

// The frontier as a table and a picture.
namespace counterflow {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Frontier three_limits() {
  Frontier frontier{.in_bytes = true, .has_choices = true, .points = {}};
  frontier.points.push_back({.limit = 1 << 20,
                             .peak = 1 << 20,
                             .makespan = Time{150'000'000},
                             .lower_bound = Time{120'000'000},
                             .bubble_fraction = 0.25,
                             .found_by = "keys",
                             .recompute = {0, 1, 2},
                             .offload = {5},
                             .all_kept = {}});
  frontier.points.push_back({.limit = 3 << 20,
                             .peak = 2 << 20,
                             .makespan = Time{110'000'000},
                             .lower_bound = Time{110'000'000},
                             .bubble_fraction = 0.125,
                             .found_by = "keys",
                             .recompute = {},
                             .offload = {},
                             .all_kept = Time{113'000'000}});
  return frontier;
}

TEST(Frontier, TableNamesTheStages) {
  const std::string table = frontier_table(three_limits());
  EXPECT_TRUE(has(table, "does not fit  0-2            5\n")) << table;
  EXPECT_TRUE(has(table, "113 ms  -              -\n")) << table;
  Frontier plain = three_limits();
  plain.has_choices = false;
  EXPECT_FALSE(has(frontier_table(plain), "recompute"));
}

TEST(Frontier, PictureHasRoundTimesAndWhatStagesDo) {
  const std::string svg = frontier_svg(three_limits());
  for (const char* part :
       {">110</text>", ">120</text>", ">150</text>", ">1 MiB</text>", ">3 MiB</text>", ">3</text>",
        ">1</text>", ">recompute</text>",
        "<title>1 MiB: 150 ms; with all kept nothing fits; recompute: stages 0-2; offload: stages "
        "5</title>",
        "<title>3 MiB: 110 ms; with all kept 113 ms</title>", "best with all activations kept"}) {
    EXPECT_TRUE(has(svg, part)) << part << "\n" << svg;
  }
  Frontier plain = three_limits();
  plain.has_choices = false;
  const std::string without = frontier_svg(plain);
  EXPECT_FALSE(has(without, "recompute</text>"));
  EXPECT_FALSE(has(without, "kept"));
}

// One limit, and a makespan that nothing lies around.
TEST(Frontier, PictureOfOnePoint) {
  Frontier frontier;
  frontier.points.push_back({.limit = 4,
                             .peak = 4,
                             .makespan = Time{0},
                             .lower_bound = Time{0},
                             .bubble_fraction = 0,
                             .found_by = "",
                             .recompute = {},
                             .offload = {},
                             .all_kept = {}});
  const std::string svg = frontier_svg(frontier);
  EXPECT_FALSE(has(svg, "nan")) << svg;
  EXPECT_FALSE(has(svg, "inf")) << svg;
  EXPECT_TRUE(has(frontier_svg({}), "</svg>"));
}

}  // namespace
}  // namespace counterflow
