#include "report/dot.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "tests/support/orders.h"
#include "tests/support/problems.h"

namespace counterflow {
namespace {

using testing::family_problem;
using testing::order;
using testing::uniform_problem;

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + what.size())) {
    ++found;
  }
  return found;
}

std::size_t nodes(const std::string& dot) {
  return count(dot, "fillcolor=");
}

std::string dot_of(const char* family, int p, int v, int m) {
  const Problem problem = family_problem(*find_family(family), p, v, m, {3, 4, 2, 0.5});
  return graph_dot(problem, generate(*find_family(family), problem));
}

TEST(Dot, DrawsAMicrobatchAndTheCriticalPath) {
  const Problem problem = uniform_problem(PlacementKind::loop, 2, 1, 1, Time{1}, Time{2}, Time{3});
  const std::string dot = graph_dot(problem, order("0F0,0I0,0W0\n1F0,1I0,1W0\n"));
  EXPECT_EQ(dot.find("digraph counterflow {\n"), 0U);
  EXPECT_EQ(count(dot, "{"), count(dot, "}"));
  EXPECT_NE(dot.find("label=\"microbatch 0\""), std::string::npos);
  EXPECT_NE(dot.find("label=\"critical path, 5 slots\""), std::string::npos);
  // Six slots of the microbatch, five of the path.
  EXPECT_EQ(nodes(dot), 11U);
  EXPECT_NE(dot.find("m0 [label=\"0F0\\nrank 0\""), std::string::npos);
  EXPECT_NE(dot.find("m0 -> m3 [label=\"activation\"]"), std::string::npos);
  EXPECT_NE(dot.find("m4 -> m1 [label=\"gradient\"]"), std::string::npos);
  EXPECT_NE(dot.find("m4 -> m5 [label=\"weight\"]"), std::string::npos);
  EXPECT_NE(dot.find("c4 -> c1 [label=\"gradient\"]"), std::string::npos);
}

TEST(Dot, OfALongScheduleStaysSmall) {
  for (const auto& [family, p, v, m] :
       std::vector<std::tuple<const char*, int, int, int>>{{"1f1b", 8, 1, 512},
                                                           {"1f1b", 128, 1, 256},
                                                           {"interleaved-1f1b", 16, 8, 64},
                                                           {"dualpipe", 32, 1, 128}}) {
    SCOPED_TRACE(std::string(family) + " p=" + std::to_string(p));
    const std::string dot = dot_of(family, p, v, m);
    EXPECT_EQ(count(dot, "{"), count(dot, "}"));
    EXPECT_LE(nodes(dot), 2U * 65U);
    EXPECT_LT(dot.size(), 100'000U);
  }
  EXPECT_NE(dot_of("1f1b", 128, 1, 256).find("more slots"), std::string::npos);
}

TEST(Dot, IsTheSameForTheSameSchedule) {
  EXPECT_EQ(dot_of("zb-h1", 4, 1, 8), dot_of("zb-h1", 4, 1, 8));
}

// Whatever graphviz makes of a text; the schedule's name is the user's, so it is escaped.
class DotTool : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::system("command -v dot > /dev/null 2>&1") != 0) {
      GTEST_SKIP() << "graphviz is not installed: apt-get install graphviz";
    }
    folder_ = std::filesystem::path(::testing::TempDir()) /
              ("counterflow_dot_" +
               std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }
  // The picture, or an empty text where dot refuses.
  [[nodiscard]] std::string rendered(const std::string& dot) const {
    const auto source = folder_ / "graph.dot";
    const auto picture = folder_ / "graph.svg";
    std::ofstream(source) << dot;
    const std::string command = "dot -Tsvg '" + source.string() + "' -o '" + picture.string() +
                                "' 2> '" + (folder_ / "log").string() + "'";
    if (std::system(command.c_str()) != 0) return "";
    std::ifstream in(picture);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }

 private:
  std::filesystem::path folder_;
};

TEST_F(DotTool, RendersSmallAndLargeSchedules) {
  for (const auto& [family, p, v, m] : std::vector<std::tuple<const char*, int, int, int>>{
           {"1f1b", 2, 1, 2}, {"zbv", 4, 2, 8}, {"dualpipe", 8, 1, 64}, {"1f1b", 96, 1, 200}}) {
    const std::string picture = rendered(dot_of(family, p, v, m));
    EXPECT_NE(picture.find("</svg>"), std::string::npos) << family << " p=" << p;
    EXPECT_NE(picture.find("critical path"), std::string::npos);
  }
}

TEST_F(DotTool, RendersAScheduleOfAnyName) {
  const Problem problem = uniform_problem(PlacementKind::loop, 2, 1, 1, Time{1}, Time{2}, Time{3});
  Schedule schedule = order("0F0,0B0\n1F0,1B0\n");
  for (const char* name : {"a \"quoted\" name.csv", "back\\slash.csv", "ends in \\"}) {
    schedule.name = name;
    const std::string dot = graph_dot(problem, schedule);
    // What falls out of the label becomes nodes of its own.
    EXPECT_EQ(count(rendered(dot), "class=\"node\""), nodes(dot)) << name;
  }
}

}  // namespace
}  // namespace counterflow
