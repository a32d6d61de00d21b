#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "scheduler/problem/config.h"

namespace counterflow {
namespace {

constexpr std::string_view kFour = R"(pipeline: {ranks: 4, microbatches: 6, schedule: 1f1b}
stages: {forward: 1ms, backward_input: 2ms, backward_weight: 3ms}
)";

Problem make(const Overrides& overrides, PlacementKind kind = PlacementKind::loop, int chunks = 1,
             bool forward_only = false) {
  const Config config = parse_config(kFour, "model.yaml", overrides);
  return make_problem(config, {Placement(kind, config.ranks.value, chunks), forward_only});
}

std::vector<std::int64_t> forwards(const Problem& problem) {
  std::vector<std::int64_t> result;
  for (const StageCost& cost : problem.costs.stages()) result.push_back(cost.forward.count());
  return result;
}

TEST(MakeProblem, CompletesEveryList) {
  const Problem problem = make({});
  EXPECT_EQ(problem.ranks(), 4);
  EXPECT_EQ(problem.stages(), 4);
  EXPECT_EQ(problem.microbatches, 6);
  EXPECT_EQ(forwards(problem), std::vector<std::int64_t>(4, 1'000'000));
  EXPECT_EQ(problem.memory.size(), 4U);
  EXPECT_EQ(problem.message.size(), 4U);
  EXPECT_EQ(problem.frozen.size(), 4U);
  EXPECT_EQ(problem.limits.static_memory.size(), 4U);
  EXPECT_TRUE(problem.limits.bytes.empty());
  EXPECT_TRUE(problem.limits.activations.empty());
  EXPECT_TRUE(problem.graph.has_edge(2, 3));
}

TEST(MakeProblem, ListsHaveOneEntryAStage) {
  const Overrides two_each = {"stages.forward=[1ns, 2ns, 3ns, 4ns, 5ns, 6ns, 7ns, 8ns]"};
  EXPECT_EQ(forwards(make(two_each, PlacementKind::v, 2)),
            (std::vector<std::int64_t>{1, 2, 3, 4, 5, 6, 7, 8}));
  const Overrides one_each = {"stages.forward=[1ns, 2ns, 3ns, 4ns]"};
  EXPECT_EQ(forwards(make(one_each, PlacementKind::bidirectional)),
            (std::vector<std::int64_t>{1, 2, 3, 4}));
}

TEST(MakeProblem, MemoryOfAStageIsKeptForTheWeightUnlessSaid) {
  const Problem whole = make({"stages.activation=100B"});
  EXPECT_EQ(whole.memory[0].kept_for_weight.value, 100);
  const Problem part =
      make({"stages.activation=100B", "stages.weight_activation=[0, 1B, 2B, 100B]"});
  EXPECT_EQ(part.memory[3].activation.value, 100);
  EXPECT_EQ(part.memory[2].kept_for_weight.value, 2);
}

TEST(MakeProblem, LimitsAreByRank) {
  const Problem problem = make(
      {"stages.activation=1B", "memory={limit: 9B, limit_activations: [4, 3, 2, 1], static: 5B}"},
      PlacementKind::v, 2);
  EXPECT_EQ(problem.limits.bytes, std::vector<Bytes>(4, Bytes{9}));
  EXPECT_EQ(problem.limits.activations, (std::vector<std::int64_t>{4, 3, 2, 1}));
  EXPECT_EQ(problem.limits.static_memory, std::vector<Bytes>(4, Bytes{5}));
}

TEST(MakeProblem, ForwardOnlyNeedsNoBackwardCosts) {
  const Config config = parse_config(
      "pipeline: {ranks: 2, microbatches: 6, schedule: forward-only}\nstages: {forward: 1ms}\n",
      "model.yaml");
  const Problem problem = make_problem(config, {Placement(PlacementKind::loop, 2, 1), true});
  EXPECT_EQ(problem.costs.stages()[0].backward_input, Time{0});
  EXPECT_FALSE(problem.needs_backward_input(1));
}

TEST(MakeProblem, WorkThatIsNotNeededCostsNothing) {
  const Problem problem = make({"stages.frozen=[0, 2]"});
  const auto& costs = problem.costs.stages();
  EXPECT_EQ(costs[0].backward_input, Time{0});  // nothing before it trains
  EXPECT_EQ(costs[0].backward_weight, Time{0});
  EXPECT_EQ(costs[1].backward_weight, Time{3'000'000});
  EXPECT_EQ(costs[2].backward_input, Time{2'000'000});
  EXPECT_EQ(costs[2].backward_weight, Time{0});
}

TEST(MakeProblem, TakesAnotherGraph) {
  const Problem problem = make({"stages.graph=[[0, 2], [1, 2], [2, 3]]"});
  EXPECT_FALSE(problem.graph.has_edge(0, 1));
  EXPECT_EQ(problem.graph.predecessors(2).size(), 2U);
}

TEST(MakeProblem, CarriesTheRest) {
  const Problem problem = make({"pipeline.split_backward=false", "pipeline.group_size=5",
                                "links.latency=3us", "links.message=7B", "stages.overlapped=4ms"});
  EXPECT_EQ(problem.split_backward, SplitBackward::full);
  EXPECT_EQ(problem.group_size, 5);
  EXPECT_EQ(problem.links.latency(0, 3), Time{3'000});
  EXPECT_EQ(problem.message[3], Bytes{7});
  EXPECT_EQ(problem.costs.pairs().find(0, 0), Time{4'000'000});
}

TEST(MakeProblem, OneRankOneStageOneMicrobatch) {
  EXPECT_EQ(make({"pipeline.ranks=1", "pipeline.microbatches=1"}).stages(), 1);
  EXPECT_EQ(make({"pipeline.ranks=1", "stages.graph=[]"}).stages(), 1);
}

}  // namespace
}  // namespace counterflow
