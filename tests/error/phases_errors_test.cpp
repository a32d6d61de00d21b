#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "scheduler/passes/compile.h"
#include "scheduler/verify/verify.h"
#include "tests/error/config_cases.h"
#include "tests/support/orders.h"
#include "tests/support/phases.h"
#include "tests/support/problems.h"

namespace counterflow::testing {
namespace {

class PhasesError : public ::testing::TestWithParam<OverrideCase> {};

constexpr std::string_view kPhasedConfig =
    "pipeline:\n"
    "  ranks: 2\n"
    "  schedule: 1f1b\n"
    "  phases: [{name: train, microbatches: 4}]\n"
    "stages: {forward: 1ms, backward_input: 2ms, backward_weight: 3ms}\n";

TEST_P(PhasesError, IsRefused) {
  const OverrideCase& c = GetParam();
  EXPECT_EQ(refusal(kPhasedConfig, c.overrides), "--set " + c.overrides.back() + ": " + c.message);
}

INSTANTIATE_TEST_SUITE_P(
    Pipeline, PhasesError,
    ::testing::ValuesIn(std::vector<OverrideCase>{
        {"Misspelt",
         {"pipeline.phases=[{name: evl, microbatches: 2}]"},
         "pipeline.phases[0].name: evl is not one of train, eval, log-prob; did you mean eval?"},
        {"NearNoName",
         {"pipeline.phases=[{name: foo, microbatches: 2}]"},
         "pipeline.phases[0].name: foo is not one of train, eval, log-prob"},
        {"NearNoKey",
         {"pipeline.phases=[{foo: eval, microbatches: 2}]"},
         "pipeline.phases[0].foo: unknown key; the keys here are name, microbatches"},
        {"NoName",
         {"pipeline.phases=[{microbatches: 2}]"},
         "pipeline.phases[0].name: missing; write for example name: train"},
        {"NoCount",
         {"pipeline.phases=[{name: eval}]"},
         "pipeline.phases[0].microbatches: missing; write for example microbatches: 8"},
        {"NoMicrobatch",
         {"pipeline.phases=[{name: eval, microbatches: 0}]"},
         "pipeline.phases[0].microbatches: 0 is out of range; write a whole number from 1 to "
         "1000000"},
        {"UnknownKey",
         {"pipeline.phases=[{name: eval, microbatch: 2}]"},
         "pipeline.phases[0].microbatch: unknown key; did you mean microbatches?"},
        {"Empty",
         {"pipeline.phases=[]"},
         "pipeline.phases: the list is empty; name a phase, such as {name: train, microbatches: "
         "8}, or leave it out and give pipeline.microbatches"},
        {"NotAList",
         {"pipeline.phases=eval"},
         "pipeline.phases: eval is not a list; write a list of phases, such as {name: eval, "
         "microbatches: 4}"},
        {"AnotherNumberBeside",
         {"pipeline.microbatches=5"},
         "pipeline.microbatches: 5 beside pipeline.phases, which have 4 together; leave it out, or "
         "make them equal"},
    }),
    case_name<OverrideCase>);

TEST(PhasesErrors, NamesItsLine) {
  const std::string yaml =
      "pipeline:\n"
      "  ranks: 2\n"
      "  schedule: 1f1b\n"
      "  phases:\n"
      "    - {name: log_prob, microbatches: 4}\n"
      "stages: {forward: 1ms}\n";
  EXPECT_EQ(refusal(yaml),
            "model.yaml:5:14: pipeline.phases[0].name: log_prob is not one of train, eval, "
            "log-prob; did you mean log-prob?");
}

TEST(PhasesErrors, TooManyTogether) {
  const std::string message = refusal(
      kPhasedConfig,
      {"pipeline.phases=[{name: eval, microbatches: 1000000}, {name: eval, microbatches: 1}]"});
  EXPECT_NE(message.find("pipeline.phases: the phases have more than 1000000 microbatches "
                         "together; lower their numbers"),
            std::string::npos)
      << message;
}

TEST(PhasesErrors, TooManyPhases) {
  std::string list;
  for (int i = 0; i < 65; ++i) list += "{name: eval, microbatches: 1},";
  const std::string message = refusal(kPhasedConfig, {"pipeline.phases=[" + list + "]"});
  EXPECT_NE(message.find("pipeline.phases: 65 phases; at most 64 are possible"), std::string::npos)
      << message;
}

TEST(PhasesErrors, AcceptsTheSameNumberBeside) {
  EXPECT_EQ(refusal(kPhasedConfig, {"pipeline.microbatches=4"}), "accepted");
  EXPECT_EQ(
      refusal(kPhasedConfig, {"pipeline.phases=[{name: train, microbatches: 1}, {name: train, "
                              "microbatches: 2}]"}),
      "accepted");
}

// An eval of microbatch 0, then training on 1.
Problem eval_then_train(int p) {
  Problem problem = uniform_problem(PlacementKind::loop, p, 1, 1, Time{10}, Time{8}, Time{5});
  set_phases(problem, {{PhaseKind::eval, 1}, {PhaseKind::train, 1}});
  return problem;
}

std::string faults(const Problem& problem, const std::string& rows) {
  return text(verify(problem, order(rows)));
}

TEST(PhaseRule, APhaseEndsBeforeTheNextBegins) {
  EXPECT_EQ(faults(eval_then_train(1), "0F0,0F1,0B1\n"), "");
  EXPECT_EQ(faults(eval_then_train(1), "0F1,0F0,0B1\n"),
            "phase rank 0 [1] 0F0: is of phase 0 (eval), and 0F1 of phase 1 (train) does not come "
            "after it; a rank ends a phase before it begins the next\n");
}

TEST(PhaseRule, PartsOfAPairAreOfOnePhase) {
  Problem problem = eval_then_train(1);
  set_phases(problem, {{PhaseKind::train, 1}, {PhaseKind::train, 1}});
  EXPECT_EQ(faults(problem, "0F0,(0F1;0B0)OVERLAP_F_B,0B1\n"),
            "phase rank 0 [1] 0B0: is of phase 0 (train), and 0F1 of phase 1 (train) does not come "
            "after it; a rank ends a phase before it begins the next\n");
}

TEST(CompleteRule, BackwardOfAPhaseWithoutOne) {
  EXPECT_EQ(faults(eval_then_train(1), "0F0,0B0,0F1,0B1\n"),
            "complete rank 0 [1] 0B0: microbatch 0 is of phase 0 (eval), which has no backward\n");
}

TEST(MemoryRule, AnEvalHoldsNothingAfterwards) {
  Problem problem = eval_then_train(1);
  set_phases(problem, {{PhaseKind::eval, 3}, {PhaseKind::train, 2}});
  problem.limits.bytes = {Bytes{1}};
  problem.limits.activations = {1};
  EXPECT_EQ(faults(problem, "0F0,0F1,0F2,0F3,0B3,0F4,0B4\n"), "");
  EXPECT_NE(faults(problem, "0F0,0F1,0F2,0F3,0F4,0B3,0B4\n"), "");
}

TEST(MatchingRule, NoGradientOfAPhaseWithoutBackward) {
  const Problem problem = eval_then_train(2);
  const ScheduleFile file = parse_schedule(
      "0F0,0SEND_F0,0RECV_B0,0F1,0SEND_F1,0RECV_B1,0B1\n"
      "1RECV_F0,1F0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n",
      "file.csv");
  const Program program = import(problem, file);
  const std::string why = "microbatch 0 has no backward, so no gradient to exchange\n";
  EXPECT_EQ(text(verify_communication(problem, program, kAllSemantics).diagnostics),
            "matching rank 0 [2] 0RECV_B0: " + why + "matching rank 1 [2] 1SEND_B0: " + why);
}

}  // namespace
}  // namespace counterflow::testing
