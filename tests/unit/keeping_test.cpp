#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "report/report.h"
#include "scheduler/error.h"
#include "scheduler/graph/evaluate.h"
#include "scheduler/passes/compile.h"
#include "scheduler/problem/config.h"
#include "scheduler/problem/keep_together.h"
#include "scheduler/search/choices.h"
#include "scheduler/verify/verify.h"
#include "simulator/simulate.h"
#include "tests/support/orders.h"
#include "tests/support/problems.h"

namespace counterflow {
namespace {

constexpr std::int64_t kActivation = 100;
constexpr std::int64_t kKept = 10;

// One stage, F 4, I 5, W 6; of 100 B 40 B are held until W.
Problem one_stage(Keeping keeping, int microbatches) {
  Problem problem =
      testing::uniform_problem(PlacementKind::loop, 1, 1, microbatches, Time{4}, Time{5}, Time{6});
  problem.memory = {{Bytes{kActivation}, Bytes{40}}};
  problem.limits.bytes = {Bytes{1'000'000}};
  return with_keeping(std::move(problem), {keeping});
}

const Keeping kRecompute{.kind = KeepingKind::recompute, .restore = Time{3}, .kept = Bytes{kKept}};
const Keeping kOffload{
    .kind = KeepingKind::offload, .store = Time{2}, .restore = Time{3}, .kept = Bytes{kKept}};

Timeline timeline_of(const Problem& problem, const std::string& rows) {
  const Schedule schedule = testing::order(rows);
  EXPECT_EQ(testing::text(verify(problem, schedule)), "");
  return simulate(compile(problem, schedule), problem.links, ExecutionModel{}).timeline;
}

std::int64_t peak_of(const Problem& problem, const std::string& rows) {
  std::int64_t peak = 0;
  const Timeline timeline = timeline_of(problem, rows);
  for (const MemorySample& sample : timeline.ranks[0].memory) {
    peak = std::max(peak, sample.held.value);
  }
  return peak;
}

std::string memory_of(const Problem& problem, const std::string& rows) {
  std::string text;
  const Timeline timeline = timeline_of(problem, rows);
  for (const MemorySample& sample : timeline.ranks[0].memory) {
    text += std::to_string(sample.at.count()) + ":" + std::to_string(sample.held.value) + " ";
  }
  return text;
}

TEST(Keeping, RecomputeFreesAfterForwardAndHoldsAgainFromItsBegin) {
  // F 0-4, RECOMPUTE 4-7 holds all again, I 7-12, W 12-18.
  EXPECT_EQ(memory_of(one_stage(kRecompute, 1), "0F0,0RECOMPUTE0,0I0,0W0\n"),
            "0:100 4:100 12:40 18:0 ");
  EXPECT_EQ(memory_of(one_stage(kRecompute, 2), "0F0,0F1,0RECOMPUTE0,0I0,0W0,0RECOMPUTE1,0B1\n"),
            "0:100 4:110 8:110 16:50 22:100 36:0 ");
}

TEST(Keeping, OffloadFreesWhenTheCopyEnds) {
  // F 0-4, OFFLOAD 4-6, RELOAD 6-9, B 9-20.
  EXPECT_EQ(memory_of(one_stage(kOffload, 2),
                      "0F0,0OFFLOAD0,0F1,0OFFLOAD1,0RELOAD1,0B1,"
                      "0RELOAD0,0B0\n"),
            "0:100 6:110 12:110 26:100 40:0 ");
}

// What is recomputed lives from its RECOMPUTE to W: each W put off holds as much as I leaves.
TEST(Keeping, WeightGradientsPutOffHoldWhatWasRecomputed) {
  const Problem problem = one_stage(kRecompute, 3);
  const std::string forwards = "0F0,0F1,0F2,";
  const std::int64_t at_once = peak_of(problem, forwards +
                                                    "0RECOMPUTE0,0I0,0W0,0RECOMPUTE1,0I1,0W1,"
                                                    "0RECOMPUTE2,0I2,0W2\n");
  const std::int64_t two_late = peak_of(problem, forwards +
                                                     "0RECOMPUTE0,0I0,0RECOMPUTE1,0I1,0RECOMPUTE2,"
                                                     "0I2,0W0,0W1,0W2\n");
  EXPECT_EQ(at_once, 2 * kKept + kActivation);
  EXPECT_EQ(two_late, 2 * 40 + kActivation);
}

TEST(Keeping, FamiliesGetTheOpsRightBesideTheirOwn) {
  const Problem problem = one_stage(kOffload, 1);
  EXPECT_EQ(to_csv(generate(*find_family("1f1b"), problem)), "0F0,0OFFLOAD0,0RELOAD0,0B0\n");
  EXPECT_EQ(to_csv(with_restores(one_stage(kRecompute, 1), testing::order("0F0,0I0,0W0\n"))),
            "0F0,0RECOMPUTE0,0I0,0W0\n");
  EXPECT_EQ(to_csv(without_restores(testing::order("0F0,0RECOMPUTE0,0I0,0W0\n"))), "0F0,0I0,0W0\n");
}

TEST(Keeping, APairStandsBetweenThem) {
  const Problem problem = one_stage(kOffload, 2);
  EXPECT_EQ(to_csv(with_restores(problem, testing::order("0F0,(0F1;0B0)OVERLAP_F_B,0B1\n"))),
            "0F0,0OFFLOAD0,0RELOAD0,(0F1;0B0)OVERLAP_F_B,0OFFLOAD1,0RELOAD1,0B1\n");
}

TEST(Keeping, RecomputeRunsWhileTheGradientIsOnItsWay) {
  Problem problem =
      testing::uniform_problem(PlacementKind::loop, 2, 1, 1, Time{4}, Time{5}, Time{6});
  problem.memory.assign(2, {Bytes{100}, Bytes{100}});
  const Time without = Evaluator(problem).makespan(testing::order("0F0,0B0\n1F0,1B0\n"));
  problem = with_keeping(std::move(problem), {kRecompute, {}});
  EXPECT_EQ(Evaluator(problem).makespan(testing::order("0F0,0RECOMPUTE0,0B0\n1F0,1B0\n")), without);
}

constexpr const char* kConfig =
    "pipeline: {ranks: 2, microbatches: 4, schedule: auto, placement: loop}\n"
    "stages:\n"
    "  forward: 2ms\n"
    "  backward_input: 2ms\n"
    "  backward_weight: 2ms\n"
    "  activation: 100B\n"
    "  recompute: {activation: 10B, time: 1ms}\n"
    "memory: {limit: 100B}\n";

Problem problem_of(const std::string& yaml, const Overrides& overrides = {}) {
  const Config config = parse_config(yaml, "model.yaml", overrides);
  return make_problem(config, {Placement(PlacementKind::loop, 2, 1), false});
}

TEST(Choices, RecomputeWhereMemoryIsTightAndNotWhereItIsNot) {
  SearchBudget budget;
  budget.iterations = 500;
  const ChosenSearch tight = search_choices(problem_of(kConfig, {"memory.limit=120B"}), {}, budget);
  EXPECT_EQ(tight.problem.keeping_of(0).kind, KeepingKind::recompute);
  const ChosenSearch wide = search_choices(problem_of(kConfig, {"memory.limit=1000B"}), {}, budget);
  EXPECT_TRUE(wide.problem.keeping.empty());
  EXPECT_TRUE(wide.result.is_optimal());
  EXPECT_LE(wide.result.makespan, tight.result.makespan);
}

TEST(Choices, SayThatStagesMayKeepLessWhereNothingFits) {
  const auto words = [](const Problem& problem) -> std::string {
    try {
      (void)search_choices(problem, {}, {});
    } catch (const InfeasibleError& error) {
      return error.what();
    }
    return "found";
  };
  const std::string without = words(problem_of(
      "pipeline: {ranks: 2, microbatches: 4, schedule: auto, placement: loop}\n"
      "stages: {forward: 2ms, backward_input: 2ms, backward_weight: 2ms, activation: 100B}\n"
      "memory: {limit: 99B}\n"));
  EXPECT_NE(without.find("raise memory.limit to 100 B there, or let its stages keep less "
                         "(stages.recompute or stages.offload)"),
            std::string::npos)
      << without;
  const std::string with = words(problem_of(kConfig, {"memory.limit=99B"}));
  EXPECT_NE(with.find("with every stage keeping the least it can, no order fits: rank 0 needs "
                      "100 B"),
            std::string::npos)
      << with;
}

TEST(Choices, ServeAnotherGoalUnderTheChoiceOrWithAllKept) {
  const Problem problem = problem_of(kConfig, {"memory.limit=120B"});
  SearchBudget budget;
  budget.iterations = 300;
  const auto by = [&](const SearchObjective& objective) {
    return search_choices_by(
        problem, {}, budget,
        [&](const Problem& chosen, std::span<const Schedule> seeds, const SearchBudget& share) {
          return search(chosen, seeds, share, objective);
        });
  };
  const auto makespan_of = [&](const Schedule& schedule) {
    return Evaluator(with_keeping_of(problem, schedule)).makespan(schedule);
  };
  const Time fastest = search_choices(problem, {}, budget).result.makespan;

  const ChosenSearch fewest_moves = by([](const Schedule& schedule) {
    std::int64_t moves = 0;
    for (const auto& order : schedule.ranks) {
      for (const Slot& slot : order) moves += restores_or_stores(slot.first.kind) ? 1 : 0;
    }
    return Time{moves};
  });
  EXPECT_TRUE(fewest_moves.problem.keeping.empty());
  EXPECT_EQ(fewest_moves.result.objective, Time{0});
  EXPECT_GT(fewest_moves.result.makespan, fastest);
  EXPECT_LE(fewest_moves.result.best_makespan, fastest);
  EXPECT_EQ(makespan_of(fewest_moves.result.fastest), fewest_moves.result.best_makespan);

  const ChosenSearch quickest = by(makespan_of);
  EXPECT_EQ(quickest.problem.keeping_of(0).kind, KeepingKind::recompute);
  EXPECT_LE(quickest.result.objective, fastest);
  EXPECT_EQ(quickest.result.objective, quickest.result.makespan);
  EXPECT_LE(quickest.result.lower_bound, quickest.result.makespan);
}

TEST(Choices, AreNoWorseThanASeedHoweverLittleTimeThereIs) {
  const Problem problem = problem_of(kConfig, {"memory.limit=120B"});
  SearchBudget thorough;
  thorough.iterations = 2'000;
  const ChosenSearch found = search_choices(problem, {}, thorough);
  SearchBudget no_time;
  no_time.time = Time{1};
  const std::vector<Schedule> seeds{found.result.schedule};
  EXPECT_LE(search_choices(problem, seeds, no_time).result.makespan, found.result.makespan);
}

TEST(Choices, SeedsKeepTheirMovesWhereTheyAreFaultless) {
  const Problem problem = one_stage(kRecompute, 2);
  const Schedule early = testing::order("0F0,0RECOMPUTE0,0F1,0B0,0RECOMPUTE1,0B1\n");
  const std::vector<Schedule> seeds{early, without_restores(early)};
  const std::vector<Schedule> fitted = seeds_for(problem, seeds);
  ASSERT_EQ(fitted.size(), 2U);
  EXPECT_EQ(to_csv(fitted[0]), to_csv(early));
  EXPECT_EQ(to_csv(fitted[1]), "0F0,0F1,0RECOMPUTE0,0B0,0RECOMPUTE1,0B1\n");
}

TEST(KeepTogether, MeasuresHowFarLayersAreApart) {
  const Placement loop(PlacementKind::loop, 3, 1);
  const Cut cut{2, 3, 2};
  EXPECT_EQ(distance_apart({{0, 1}, {2, 4}}, loop, &cut), 0);
  EXPECT_EQ(distance_apart({{1, 2}}, loop, &cut), 1);
  EXPECT_EQ(distance_apart({{4, 6}}, loop, &cut), 1);
  EXPECT_EQ(distance_apart({{2, 6}}, loop, &cut), 2);
  EXPECT_GT(distance_apart({{0, 6}}, loop, &cut), 1000);
  const Placement v(PlacementKind::v, 2, 2);
  const Cut four{1, 1, 1, 1};
  EXPECT_EQ(distance_apart({{0, 3}, {1, 2}}, v, &four), 0);
}

}  // namespace
}  // namespace counterflow
