#include "scheduler/problem/config.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/problem/guess.h"

namespace counterflow {
namespace {

constexpr std::string_view kSmall = R"(pipeline:
  ranks: 2
  microbatches: 4
  schedule: 1f1b
stages:
  forward: 1ms
  backward_input: 2ms
  backward_weight: 3ms
)";

Config with(const Overrides& overrides) {
  return parse_config(kSmall, "model.yaml", overrides);
}

TEST(Config, ReadsTheSmallest) {
  const Config config = with({});
  EXPECT_EQ(config.file, "model.yaml");
  EXPECT_EQ(config.ranks.value, 2);
  EXPECT_EQ(to_string(config.ranks.where), "model.yaml:2:10");
  EXPECT_EQ(config.microbatches.value, 4);
  EXPECT_EQ(config.schedule.value, "1f1b");
  EXPECT_EQ(config.forward->values, std::vector{Time{1'000'000}});
  EXPECT_FALSE(config.forward->is_list);
  EXPECT_EQ(config.forward->key, "stages.forward");
  EXPECT_EQ(config.backward_weight->values, std::vector{Time{3'000'000}});
  EXPECT_EQ(config.split_backward, SplitBackward::automatic);
  EXPECT_TRUE(config.overlapped.value.empty());
  EXPECT_EQ(config.execution, ExecutionModel::ideal());
  EXPECT_FALSE(config.chunks || config.placement || config.message || config.memory_limit);
}

TEST(Config, ReadsThePipeline) {
  const Config config =
      with({"pipeline.chunks=3", "pipeline.placement=wave", "pipeline.split_backward=true",
            "pipeline.group_size=5", "pipeline.schedule=orders/mine.csv"});
  EXPECT_EQ(config.chunks->value, 3);
  EXPECT_EQ(config.placement->value.kind, PlacementKind::wave);
  EXPECT_EQ(config.split_backward, SplitBackward::split);
  EXPECT_EQ(config.group_size->value, 5);
  EXPECT_EQ(config.schedule.value, "orders/mine.csv");
  EXPECT_EQ(with({"pipeline.split_backward=false"}).split_backward, SplitBackward::full);
  EXPECT_EQ(with({"pipeline.split_backward=True"}).split_backward, SplitBackward::split);
  EXPECT_EQ(with({"pipeline.split_backward=auto"}).split_backward, SplitBackward::automatic);
}

TEST(Config, ReadsEveryPlacement) {
  EXPECT_EQ(with({"pipeline.placement=loop"}).placement->value.kind, PlacementKind::loop);
  EXPECT_EQ(with({"pipeline.placement=v"}).placement->value.kind, PlacementKind::v);
  EXPECT_EQ(with({"pipeline.placement=bidirectional"}).placement->value.kind,
            PlacementKind::bidirectional);
  const Config list = with({"pipeline.placement=[0, 1, 1, 0]"});
  EXPECT_EQ(list.placement->value.kind, PlacementKind::list);
  EXPECT_EQ(list.placement->value.list, (std::vector<Rank>{0, 1, 1, 0}));
}

TEST(Config, OneScaleListHoldsForEveryKind) {
  const Config config = with({"pipeline.microbatches={count: 2, scale: [1, 1.7]}"});
  EXPECT_EQ(config.microbatches.value, 2);
  const std::vector<double> expected = {1, 1.7};
  EXPECT_EQ(config.factors.forward, expected);
  EXPECT_EQ(config.factors.backward_input, expected);
  EXPECT_EQ(config.factors.backward_weight, expected);
  EXPECT_EQ(config.factors.activation, std::vector<double>(expected.size(), 1.0));
}

TEST(Config, ScaleKindsNotGivenAreOne) {
  const Config config = with({"pipeline.microbatches={count: 2, scale: {backward_input: [3, 4]}}"});
  EXPECT_EQ(config.factors.forward, (std::vector<double>{1, 1}));
  EXPECT_EQ(config.factors.backward_input, (std::vector<double>{3, 4}));
  EXPECT_EQ(config.factors.activation, (std::vector<double>{1, 1}));
  EXPECT_TRUE(with({"pipeline.microbatches={count: 2}"}).factors.forward.empty());
}

TEST(Config, TimeUnitHoldsForEveryBareDuration) {
  for (const std::string unit : {"units.time=us", "stages.time_unit=us"}) {
    const Config config = with({unit, "stages.forward=[1.5, 2ms]", "links.latency=7"});
    EXPECT_EQ(config.forward->values, (std::vector{Time{1'500}, Time{2'000'000}}));
    EXPECT_EQ(config.links.latency(0, 1), Time{7'000});
  }
  EXPECT_NO_THROW((void)with({"units.time=us", "stages.time_unit=us"}));
}

TEST(Config, ReadsPairCosts) {
  EXPECT_EQ(with({"stages.overlapped=5ms"}).overlapped.value.find(3, 4), Time{5'000'000});
  const Config config =
      with({"stages.overlapped={default: 5ms, pairs: [[0, 1, 4ms], [1, 0, 3ms]]}"});
  EXPECT_EQ(config.overlapped.value.find(0, 1), Time{4'000'000});
  EXPECT_EQ(config.overlapped.value.find(1, 0), Time{3'000'000});
  EXPECT_EQ(config.overlapped.value.find(1, 1), Time{5'000'000});
  EXPECT_EQ(config.overlapped_stages.size(), 2U);
  const Config pairs = with({"stages.overlapped={pairs: [[0, 1, 4ms]]}"});
  EXPECT_EQ(pairs.overlapped.value.find(1, 1), Time{-1});
}

TEST(Config, ReadsGraphAndFrozen) {
  const Config config = with({"stages.graph=[[0, 2], [1, 2]]", "stages.frozen=[1, 0]"});
  EXPECT_EQ(config.graph->value, (std::vector<StageGraph::Edge>{{0, 2}, {1, 2}}));
  EXPECT_EQ(config.frozen->value, (std::vector<int>{1, 0}));
}

TEST(Config, ReadsLinks) {
  const Config config = with({"links={latency: 5us, bandwidth: 50GB/s, message: [56MiB, 1B]}"});
  EXPECT_EQ(config.links.latency(0, 1), Time{5'000});
  EXPECT_EQ(config.links.occupancy(Bytes{50'000}), Time{1'000});
  EXPECT_EQ(config.message->values, (std::vector{Bytes{58'720'256}, Bytes{1}}));
}

TEST(Config, ReadsLatencyTables) {
  const Config matrix = with({"links.latency=[[0, 1us], [2us, 0]]"});
  EXPECT_EQ(matrix.links.latency(0, 1), Time{1'000});
  EXPECT_EQ(matrix.links.latency(1, 0), Time{2'000});
  const Config pairs = with({"pipeline.ranks=3",
                             "links.latency={default: 9us, pairs: [[0, 1, 1us], [2, 1, 3us], "
                             "[1, 2, 4us]]}"});
  EXPECT_EQ(pairs.links.latency(0, 1), Time{1'000});
  EXPECT_EQ(pairs.links.latency(1, 0), Time{1'000});
  EXPECT_EQ(pairs.links.latency(2, 1), Time{3'000});
  EXPECT_EQ(pairs.links.latency(1, 2), Time{4'000});
  EXPECT_EQ(pairs.links.latency(0, 2), Time{9'000});
  EXPECT_EQ(pairs.links.latency(2, 2), Time{0});
}

TEST(Config, ReadsExecution) {
  EXPECT_EQ(with({"execution=nccl"}).execution, ExecutionModel::nccl());
  EXPECT_EQ(with({"execution={preset: gloo}"}).execution, ExecutionModel::gloo());
  const ExecutionModel model =
      with({"execution={preset: nccl, semantics: posted, independent_transfers: true, "
            "serial_communicators: false, launch_order: serial, hardware_queues: 8}"})
          .execution;
  EXPECT_EQ(model.name, "custom");
  EXPECT_EQ(model.semantics, Semantics::posted);
  EXPECT_TRUE(model.independent_transfers);
  EXPECT_FALSE(model.serial_communicators);
  EXPECT_EQ(model.launch_order, LaunchOrder::serial);
  EXPECT_EQ(model.hardware_queues, 8);
}

TEST(Config, ReadsMemory) {
  const Config config =
      with({"stages.activation=1MiB", "stages.weight_activation=[1B, 2B]",
            "memory={limit: [40GiB, 20GiB], limit_activations: 8, static: 3GiB}"});
  EXPECT_EQ(config.activation->values, std::vector{Bytes{1 << 20}});
  EXPECT_EQ(config.weight_activation->values, (std::vector{Bytes{1}, Bytes{2}}));
  EXPECT_TRUE(config.memory_limit->is_list);
  EXPECT_EQ(config.activation_limit->values, std::vector{std::int64_t{8}});
  EXPECT_EQ(config.static_memory->values, std::vector{Bytes{3'221'225'472}});
}

TEST(Config, ZeroDurationsAreLegal) {
  const Config config =
      with({"stages.forward=0", "stages.backward_input=0ms", "stages.backward_weight=0"});
  EXPECT_EQ(config.forward->values, std::vector{Time{0}});
}

TEST(Config, AliasesStandForTheirValue) {
  const Config config = parse_config(
      "pipeline: {ranks: 2, microbatches: 4, schedule: 1f1b}\n"
      "stages: {forward: &list [1ms, 2ms], backward_input: *list, backward_weight: *list}\n",
      "model.yaml");
  EXPECT_EQ(config.backward_weight->values, (std::vector{Time{1'000'000}, Time{2'000'000}}));
}

TEST(Config, TakesAByteOrderMarkAndOneMarkedDocument) {
  EXPECT_NO_THROW((void)parse_config("\xef\xbb\xbf" + std::string(kSmall), "model.yaml"));
  EXPECT_NO_THROW((void)parse_config("---\n" + std::string(kSmall) + "...\n", "model.yaml"));
}

TEST(Override, ReplacesAddsAndNests) {
  const Config config = with({"pipeline.ranks=8", "memory.static=1GiB", "pipeline.ranks=4"});
  EXPECT_EQ(config.ranks.value, 4);
  EXPECT_EQ(to_string(config.ranks.where), "--set pipeline.ranks=4");
  EXPECT_EQ(config.static_memory->values, std::vector{Bytes{1 << 30}});
}

TEST(Override, ReachesIntoAnAliasWithoutChangingItsAnchor) {
  const std::string yaml =
      "pipeline: {ranks: 2, microbatches: 4, schedule: 1f1b}\n"
      "stages: {forward: 1ms, overlapped: {default: 1ms, pairs: &p [[0, 1, 2ms]]}}\n"
      "links: {latency: {default: 1ms, pairs: *p}}\n";
  const Config config = parse_config(yaml, "model.yaml", {"links.latency.pairs=[[0, 1, 9ms]]"});
  EXPECT_EQ(config.links.latency(0, 1), Time{9'000'000});
  EXPECT_EQ(config.overlapped.value.find(0, 1), Time{2'000'000});
}

TEST(Override, ValueMayHoldEqualsSigns) {
  EXPECT_EQ(with({"pipeline.schedule=a=b.csv"}).schedule.value, "a=b.csv");
}

TEST(Nearest, IsTheLeastEdits) {
  EXPECT_EQ(nearest("rank", {"stages", "ranks", "rate"}), "ranks");
  EXPECT_EQ(nearest("", {"stages", "v"}), "v");
  EXPECT_EQ(nearest("x", {}), "");
  EXPECT_EQ(nearest("ab", {"ax", "ay"}), "ax");  // the first of equals
}

using Words = std::vector<std::string_view>;

TEST(Guesses, AreWhatTheWordBegins) {
  const Words keys = {"forward", "backward_input", "backward_weight", "activation"};
  EXPECT_EQ(guesses("backward", keys), (Words{"backward_input", "backward_weight"}));
  EXPECT_EQ(guesses("a", keys), Words{"activation"});
  // The beginning of too many says nothing.
  EXPECT_EQ(guesses("--", {"--seed", "--set", "--schedule", "--scenario"}), Words{});
}

TEST(Guesses, AreNoFurtherThanAThirdOfTheWordAndOne) {
  EXPECT_EQ(guesses("vee", {"v"}), Words{"v"});               // 2 of 1 + 3/3 edits
  EXPECT_EQ(guesses("veee", {"v"}), Words{});                 // 3 of 1 + 4/3
  EXPECT_EQ(guesses("ABCDEF", {"abcdef"}), Words{"abcdef"});  // 6 halves of 1 + 6/3
  EXPECT_EQ(guesses("", {"v"}), Words{});
  EXPECT_EQ(guesses("v", {}), Words{});
}

TEST(Guesses, ShareSomethingWithTheWord) {
  EXPECT_EQ(guesses("x", {"s"}), Words{});
  EXPECT_EQ(guesses("S", {"s"}), Words{"s"});
}

TEST(Examples, AllMakeAProblem) {
  int examples = 0;
  for (const auto& entry : std::filesystem::directory_iterator(EXAMPLES)) {
    if (entry.path().extension() != ".yaml") continue;
    SCOPED_TRACE(entry.path().string());
    const Config config = read_config(entry.path().string());
    const bool bidirectional = config.schedule.value == "dualpipe";
    const Placement placement(bidirectional ? PlacementKind::bidirectional : PlacementKind::loop,
                              config.ranks.value, config.chunks ? config.chunks->value : 1);
    const Problem problem = make_problem(config, {placement, false});
    EXPECT_EQ(problem.microbatches, config.microbatches.value);
    ++examples;
  }
  EXPECT_GE(examples, 6);
}

}  // namespace
}  // namespace counterflow
