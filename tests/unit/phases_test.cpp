#include "tests/support/phases.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "report/report.h"
#include "scheduler/bounds/lower_bound.h"
#include "scheduler/error.h"
#include "scheduler/graph/evaluate.h"
#include "scheduler/ir/schedule_file.h"
#include "scheduler/passes/compile.h"
#include "scheduler/problem/config.h"
#include "scheduler/search/search.h"
#include "schedules/registry.h"
#include "simulator/simulate.h"
#include "tests/support/problems.h"

namespace counterflow {
namespace {

using testing::set_phases;
using testing::units;

constexpr PhaseKind kTrain = PhaseKind::train;
constexpr PhaseKind kEval = PhaseKind::eval;
constexpr PhaseKind kLogProb = PhaseKind::log_prob;

Problem on(const std::string& family, int p, const std::vector<std::pair<PhaseKind, int>>& phases) {
  const Family& its = *find_family(family);
  Problem problem = testing::family_problem(its, p, its.default_chunks, 1);
  set_phases(problem, phases);
  return problem;
}

Time makespan(const std::string& family, const Problem& problem) {
  return Evaluator(problem).makespan(generate(*find_family(family), problem));
}

constexpr const char* kPhased =
    "pipeline:\n"
    "  ranks: 2\n"
    "  schedule: 1f1b\n"
    "  phases: [{name: log-prob, microbatches: 3}, {name: train, microbatches: 4},\n"
    "           {name: eval, microbatches: 2}]\n"
    "stages: {forward: 1ms, backward_input: 2ms, backward_weight: 3ms}\n";

Problem problem_of(const Config& config, PlacementKind kind = PlacementKind::loop) {
  return make_problem(config, {Placement(kind, config.ranks.value, 1), false});
}

TEST(PhasesOfAConfig, AreNumberedOn) {
  const Problem problem = problem_of(parse_config(kPhased, "model.yaml"));
  EXPECT_EQ(problem.microbatches, 9);
  EXPECT_EQ(problem.phases, (std::vector<Phase>{{kLogProb, 0, 3}, {kTrain, 3, 4}, {kEval, 7, 2}}));
  EXPECT_FALSE(problem.forward_only);
  std::string phases;
  std::string trained;
  for (Microbatch mb = 0; mb < 9; ++mb) {
    phases += std::to_string(problem.phase_of(mb));
    trained += problem.trains(mb) ? 't' : '-';
  }
  EXPECT_EQ(phases, "000111122");
  EXPECT_EQ(trained, "---tttt--");
}

TEST(PhasesOfAConfig, OneThatTrainsIsNoPhaseAtAll) {
  const Config config =
      parse_config(kPhased, "model.yaml", {"pipeline.phases=[{name: train, microbatches: 5}]"});
  const Problem problem = problem_of(config);
  EXPECT_TRUE(problem.phases.empty());
  EXPECT_EQ(problem.microbatches, 5);
}

TEST(PhasesOfAConfig, WithoutTrainingNeedNoCostOfABackward) {
  const Config config = parse_config(
      "pipeline: {ranks: 2, schedule: 1f1b, phases: [{name: eval, microbatches: 2}]}\n"
      "stages: {forward: 1ms}\n",
      "model.yaml");
  EXPECT_TRUE(problem_of(config).forward_only);
}

TEST(PhasesOfAConfig, StandBesideFactorsForAll) {
  const Config config =
      parse_config(kPhased, "model.yaml",
                   {"pipeline.microbatches={count: 9, scale: [1, 1, 1, 2, 2, 2, 2, 3, 3]}"});
  const Problem problem = problem_of(config);
  const Problem train = problem.only(problem.phases[1]);
  EXPECT_EQ(train.microbatches, 4);
  EXPECT_EQ(train.costs.factors().forward, std::vector<double>(4, 2.0));
  EXPECT_FALSE(train.forward_only);
  EXPECT_TRUE(problem.only(problem.phases[2]).forward_only);
}

TEST(Phases, FlowFromBothEndsEach) {
  const Problem problem = on("dualpipe", 4, {{kEval, 3}, {kTrain, 4}});
  std::string replicas;
  for (Microbatch mb = 0; mb < 7; ++mb) replicas += std::to_string(problem.replica_of(mb));
  EXPECT_EQ(replicas, "0010011");
}

TEST(Phases, AreGeneratedOneAfterTheOther) {
  const Problem problem = on("1f1b", 2, {{kEval, 2}, {kTrain, 2}, {kLogProb, 1}});
  EXPECT_EQ(to_csv(generate(*find_family("1f1b"), problem)),
            "0F0,0F1,0F2,0F3,0B2,0B3,0F4\n"
            "1F0,1F1,1F2,1B2,1F3,1B3,1F4\n");
}

TEST(Phases, TakeEveryStageInAForwardPass) {
  const Problem problem = on("zbv", 2, {{kEval, 2}, {kEval, 1}});
  EXPECT_EQ(to_csv(generate(*find_family("zbv"), problem)),
            "0F0,0F1,3F0,3F1,0F2,3F2\n1F0,1F1,2F0,2F1,1F2,2F2\n");
}

TEST(Phases, NeedAFamilyThatTrains) {
  const Problem problem = on("forward-only", 2, {{kEval, 2}, {kTrain, 2}});
  try {
    (void)generate(*find_family("forward-only"), problem);
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "forward-only has no backward, which pipeline.phases asks for to train; choose a "
                 "schedule with one, such as 1f1b");
  }
}

// F takes 1, B 2. An eval before 1F1B costs its forwards and nothing else: each rank ends it just
// when the first microbatch to train arrives. After 1F1B, rank 0 ends last and fills the pipe anew.
TEST(Phases, OfOneForwardOneBackwardTakeWhatPaperSays) {
  for (const int p : {1, 2, 4, 5}) {
    for (const int m : {p, 2 * p, 3 * p + 1}) {
      const Time train = (m + p - 1) * units(3);
      Problem before = on("1f1b", p, {{kEval, 4}, {kTrain, m}});
      before.split_backward = SplitBackward::full;
      EXPECT_EQ(makespan("1f1b", before), 4 * units(1) + train);
      EXPECT_EQ(lower_bound(before), 4 * units(1) + train);
      const Problem after = on("1f1b", p, {{kTrain, m}, {kEval, 4}});
      EXPECT_EQ(makespan("1f1b", after), train + (4 + p - 1) * units(1));
    }
  }
}

TEST(Phases, HoldAnActivationOnlyWhereItIsTrained) {
  const Problem eval = on("1f1b", 4, {{kEval, 8}, {kLogProb, 3}});
  const Problem both = on("1f1b", 4, {{kEval, 8}, {kTrain, 8}});
  const auto peaks = [](const Problem& problem) {
    const Program program = compile(problem, generate(*find_family("1f1b"), problem));
    const Report report =
        measure(program, simulate(program, problem.links, ExecutionModel::ideal()).timeline);
    std::vector<std::int64_t> all;
    for (const RankReport& rank : report.per_rank) {
      EXPECT_EQ(rank.peak_activations, rank.peak_memory.value);
      all.push_back(rank.peak_activations);
    }
    return all;
  };
  EXPECT_EQ(peaks(eval), (std::vector<std::int64_t>{1, 1, 1, 1}));
  EXPECT_EQ(peaks(both), (std::vector<std::int64_t>{4, 3, 2, 1}));
}

TEST(Phases, HaveKernelsThatFreeWhatNothingNeeds) {
  const Problem problem = on("1f1b", 2, {{kEval, 2}, {kTrain, 2}, {kEval, 1}});
  const Program program = compile(problem, generate(*find_family("1f1b"), problem));
  std::map<std::pair<int, std::int64_t>, int> forwards;  // [stage, frees]
  for (const Kernel& kernel : program.kernels) {
    if (kernel.kind == OpKind::forward) ++forwards[{kernel.stage, kernel.frees.value}];
  }
  EXPECT_EQ(forwards, (std::map<std::pair<int, std::int64_t>, int>{
                          {{0, 0}, 1}, {{0, 1}, 1}, {{1, 0}, 1}, {{1, 1}, 1}}));
}

TEST(Phases, AreNotSearched) {
  const Problem problem = on("1f1b", 2, {{kEval, 2}, {kTrain, 2}});
  EXPECT_THROW((void)search(problem, {}, {}), InputError);
}

}  // namespace
}  // namespace counterflow
