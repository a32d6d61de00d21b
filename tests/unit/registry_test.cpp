#include "schedules/registry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/error.h"
#include "tests/support/problems.h"

namespace counterflow {
namespace {

using testing::family_problem;
using testing::uniform_problem;
using testing::units;

Problem unit_problem(PlacementKind kind, int p, int v, int m) {
  return uniform_problem(kind, p, v, m, units(1), units(1), units(1));
}

// The message of the InputError that generating raises; empty if there is none.
std::string refused(const std::string& family, const Problem& problem) {
  try {
    (void)generate(*find_family(family), problem);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

void expect_contains(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    EXPECT_NE(text.find(part), std::string::npos) << "\"" << part << "\" is not in: " << text;
  }
}

TEST(Registry, HasEveryFamilyOfTheConfig) {
  std::vector<std::string> names;
  for (const Family& family : families()) names.emplace_back(family.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{
                "gpipe",         "1f1b",   "eager-1f1b",   "interleaved-1f1b",  "looped-bfs",
                "zb-h1",         "zb-h2",  "zb-heuristic", "interleaved-zb",    "zbv",
                "v-half",        "v-min",  "1f1b-v",       "dualpipe",          "dualpipev",
                "combined-1f1b", "hanayo", "chimera",      "group-interleaved", "forward-only"}));
}

TEST(Registry, NamesAndAliasesAreUniqueAndLeadBack) {
  std::set<std::string> seen;
  for (const Family& family : families()) {
    std::vector<std::string_view> words = family.aliases;
    words.push_back(family.name);
    for (const std::string_view word : words) {
      std::string folded(word);
      std::transform(folded.begin(), folded.end(), folded.begin(),
                     [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      EXPECT_TRUE(seen.insert(folded).second) << word;
      ASSERT_NE(find_family(word), nullptr) << word;
      EXPECT_EQ(find_family(word)->name, family.name);
    }
  }
}

TEST(Registry, EveryFamilyIsDescribed) {
  for (const Family& family : families()) {
    EXPECT_FALSE(family.title.empty()) << family.name;
    EXPECT_FALSE(family.summary.empty()) << family.name;
    EXPECT_FALSE(family.constraints.empty()) << family.name;
    EXPECT_FALSE(family.source.empty()) << family.name;
    EXPECT_TRUE(family.sibling.empty() || find_family(family.sibling) != nullptr) << family.name;
    // A formula that is computed is also written out.
    const bool computes = family.formula != has_no_formula;
    EXPECT_TRUE(!computes || !family.formula_text.empty()) << family.name;
  }
}

TEST(Registry, KnowsPyTorchsClassNames) {
  const std::vector<std::pair<std::string, std::string>> names = {
      {"GPipe", "gpipe"},
      {"ScheduleGPipe", "gpipe"},
      {"1F1B", "1f1b"},
      {"Schedule1F1B", "1f1b"},
      {"Interleaved1F1B", "interleaved-1f1b"},
      {"ScheduleInterleaved1F1B", "interleaved-1f1b"},
      {"LoopedBFS", "looped-bfs"},
      {"ScheduleLoopedBFS", "looped-bfs"},
      {"InterleavedZeroBubble", "interleaved-zb"},
      {"ScheduleInterleavedZeroBubble", "interleaved-zb"},
      {"ZBVZeroBubble", "zbv"},
      {"ScheduleZBVZeroBubble", "zbv"},
      {"DualPipeV", "dualpipev"},
      {"ScheduleDualPipeV", "dualpipev"},
      {"zb1p", "zb-h1"},
      {"ZB2P", "zb-h2"},
      {"pipedream-flush", "1f1b"}};
  for (const auto& [name, family] : names) {
    ASSERT_NE(find_family(name), nullptr) << name;
    EXPECT_EQ(find_family(name)->name, family);
  }
}

TEST(Registry, FindsNothingForAnUnknownName) {
  EXPECT_EQ(find_family(""), nullptr);
  EXPECT_EQ(find_family("zb-h3"), nullptr);
}

TEST(Registry, OffersTheNearestName) {
  EXPECT_EQ(nearest_family("zb-h3"), "zb-h1");
  EXPECT_EQ(nearest_family("DualPip"), "dualpipe");
  EXPECT_EQ(nearest_family("interleaved_1f1b"), "interleaved-1f1b");
  EXPECT_FALSE(nearest_family("").empty());
}

TEST(Generate, NamesTheScheduleAfterItsFamily) {
  const Family& family = *find_family("ScheduleGPipe");
  EXPECT_EQ(generate(family, family_problem(family, 2, 1, 2)).name, "gpipe");
}

TEST(Generate, RefusesAnotherNumberOfStagesPerRank) {
  EXPECT_EQ(refused("1f1b", unit_problem(PlacementKind::loop, 2, 2, 4)),
            "1F1B takes 1 stage per rank, got 2 (did you mean interleaved-1f1b?)");
  EXPECT_EQ(refused("zbv", unit_problem(PlacementKind::loop, 4, 1, 4)),
            "ZB-V takes 2 stages per rank, got 1 (did you mean interleaved-zb?)");
  EXPECT_EQ(refusal(*find_family("dualpipe"), {4, 8, 2, 0}),
            "DualPipe takes 1 stage per rank, got 2 (did you mean dualpipev?)");
  EXPECT_EQ(refused("looped-bfs", unit_problem(PlacementKind::loop, 4, 1, 4)), "");
}

TEST(Generate, RefusesAPlacementThatIsNotTheFamilysAndNamesTheStage) {
  expect_contains(refused("zbv", unit_problem(PlacementKind::loop, 4, 2, 8)),
                  {"zbv needs the v placement", "stage 4 belongs on rank 3", "puts it on rank 0"});
  expect_contains(refused("interleaved-1f1b", unit_problem(PlacementKind::v, 4, 2, 8)),
                  {"needs the loop placement", "stage 4 belongs on rank 0", "puts it on rank 3"});
  expect_contains(refused("dualpipe", unit_problem(PlacementKind::loop, 4, 1, 8)),
                  {"dualpipe needs the bidirectional placement", "has loop"});
  expect_contains(refused("1f1b", unit_problem(PlacementKind::bidirectional, 4, 1, 8)),
                  {"1f1b needs the loop placement", "has bidirectional"});
}

TEST(Generate, TakesAListThatPutsEveryStageWhereTheFamilyDoes) {
  Problem problem = unit_problem(PlacementKind::v, 2, 2, 4);
  problem.placement = Placement(2, {0, 1, 1, 0});
  EXPECT_EQ(refused("zbv", problem), "");
  problem.placement = Placement(2, {0, 1, 0, 1});
  EXPECT_EQ(refused("interleaved-1f1b", problem), "");
  problem.placement = Placement(2, {0, 1, 0, 0});
  expect_contains(refused("interleaved-1f1b", problem), {"stage 3 belongs on rank 1"});
}

TEST(Generate, RefusesStagesThatDoNotDivideByTheRanks) {
  Problem problem = unit_problem(PlacementKind::loop, 2, 2, 4);
  problem.placement = Placement(2, {0, 1, 0});
  problem.graph = StageGraph::chain(3);
  expect_contains(refused("interleaved-1f1b", problem), {"3 stages", "2 ranks", "use 2 or 4"});
}

TEST(Generate, RefusesAnOddNumberOfMirroredRanks) {
  EXPECT_EQ(find_family("dualpipe")->refuse({4, 3, 1, 0}), std::nullopt);
  expect_contains(refusal(*find_family("dualpipe"), {5, 20, 1, 0}).value(),
                  {"even number of ranks", "5 is odd", "use 4 or 6", "dualpipev"});
  expect_contains(refusal(*find_family("chimera"), {1, 2, 1, 0}).value(), {"1 is odd", "use 2"});
}

TEST(Generate, RefusesHalfAWave) {
  expect_contains(refusal(*find_family("hanayo"), {2, 4, 3, 0}).value(),
                  {"even number of stages per rank", "3 is odd", "use 2 or 4"});
}

TEST(Generate, RefusesGroupsThatWouldDeadlock) {
  Problem problem = unit_problem(PlacementKind::loop, 4, 2, 8);
  problem.group_size = 2;
  for (const auto* name : {"interleaved-1f1b", "interleaved-zb", "combined-1f1b"}) {
    expect_contains(refused(name, problem),
                    {name, "groups of 2", "p = 4", "v = 2", "m = 8", "use group_size 4"});
  }
  // A last group of 2 after one of 8.
  problem = unit_problem(PlacementKind::loop, 8, 2, 10);
  problem.group_size = 8;
  expect_contains(refused("interleaved-1f1b", problem), {"groups of 8", "use group_size 10"});
  problem.group_size = 10;
  EXPECT_EQ(refused("interleaved-1f1b", problem), "");
  problem.group_size = 0;
  EXPECT_EQ(refused("interleaved-1f1b", problem), "");
}

TEST(Generate, RefusesGroupsLargerThanTheRanksWhereTheyMustBeSmaller) {
  Problem problem = unit_problem(PlacementKind::loop, 4, 2, 8);
  problem.group_size = 5;
  expect_contains(refused("group-interleaved", problem),
                  {"group_size 5", "p = 4", "use 4 or less", "for 2"});
}

TEST(Generate, RefusesAnUncutBackwardWhereTheFamilyCutsIt) {
  for (const auto* name : {"zb-h1", "dualpipe"}) {
    Problem problem = family_problem(*find_family(name), 4, 1, 8);
    problem.split_backward = SplitBackward::full;
    expect_contains(refused(name, problem), {"split_backward: false", name, "1f1b"});
    problem.split_backward = SplitBackward::automatic;
    EXPECT_EQ(refused(name, problem), "");
  }
}

TEST(Generate, RefusesToCutTheBackwardOfPairs) {
  Problem problem = family_problem(*find_family("combined-1f1b"), 4, 2, 8);
  problem.split_backward = SplitBackward::split;
  expect_contains(refused("combined-1f1b", problem), {"split_backward: true", "zb-h1"});
}

TEST(Generate, CutsEachBackwardWhenAsked) {
  Problem problem = unit_problem(PlacementKind::loop, 1, 1, 2);
  problem.split_backward = SplitBackward::split;
  const Schedule schedule = generate(*find_family("1f1b"), problem);
  const std::vector<Slot> expected = {
      {{OpKind::forward, 0, 0, 0}, {}},         {{OpKind::backward_input, 0, 0, 0}, {}},
      {{OpKind::backward_weight, 0, 0, 0}, {}}, {{OpKind::forward, 0, 0, 1}, {}},
      {{OpKind::backward_input, 0, 0, 1}, {}},  {{OpKind::backward_weight, 0, 0, 1}, {}}};
  EXPECT_EQ(schedule.ranks.front(), expected);
}

// A pair whose backward a frozen stage does not need is its forward; one that loses W stays a pair.
TEST(Generate, KeepsWhatFrozenStagesLeaveOfPairs) {
  const Family& family = *find_family("combined-1f1b");
  Problem problem = family_problem(family, 2, 1, 4);
  problem.frozen = {1, 0};
  const Schedule first_frozen = generate(family, problem);
  for (const Slot& slot : first_frozen.ranks[0]) EXPECT_EQ(slot.first.kind, OpKind::forward);
  for (const Slot& slot : first_frozen.ranks[0]) EXPECT_FALSE(slot.is_pair());
  problem.frozen = {0, 1};
  const Schedule last_frozen = generate(family, problem);
  ASSERT_TRUE(last_frozen.ranks[1][1].is_pair());
  EXPECT_EQ(last_frozen.ranks[1][1].second.kind, OpKind::backward_input);
}

TEST(Generate, FlowsTheSecondHalfOfTheMicrobatchesTheOtherWay) {
  const Family& family = *find_family("dualpipe");
  const Schedule schedule = generate(family, family_problem(family, 2, 1, 5));
  for (std::size_t r = 0; r < 2; ++r) {
    for (const Slot& slot : schedule.ranks[r]) {
      EXPECT_EQ(slot.first.replica, slot.first.microbatch < 3 ? 0 : 1);
    }
  }
  EXPECT_EQ(schedule.ranks[0].front().first, (Op{OpKind::forward, 0, 0, 0}));
  EXPECT_EQ(schedule.ranks[1].front().first, (Op{OpKind::forward, 1, 0, 3}));
}

TEST(ShapeOf, CountsStagesPerRank) {
  Problem problem = unit_problem(PlacementKind::loop, 4, 3, 8);
  problem.group_size = 4;
  const Shape shape = shape_of(problem);
  EXPECT_EQ(shape.ranks, 4);
  EXPECT_EQ(shape.microbatches, 8);
  EXPECT_EQ(shape.chunks, 3);
  EXPECT_EQ(shape.group_size, 4);
}

}  // namespace
}  // namespace counterflow
