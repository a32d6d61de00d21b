#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/error/config_cases.h"

namespace counterflow::testing {
namespace {

class MakeProblemError : public ::testing::TestWithParam<OverrideCase> {};

TEST_P(MakeProblemError, IsRefused) {
  const OverrideCase& c = GetParam();
  EXPECT_EQ(refusal(kGoodConfig, c.overrides), "--set " + c.overrides.back() + ": " + c.message);
}

INSTANTIATE_TEST_SUITE_P(
    ListsAndStages, MakeProblemError,
    ::testing::ValuesIn(std::vector<OverrideCase>{
        {"ForwardListLength",
         {"stages.forward=[1ms, 2ms, 3ms]"},
         "stages.forward: a list of 3 for 2 stages; give 2 entries, or one number for all"},
        {"BackwardListLength",
         {"stages.backward_weight=[1ms]"},
         "stages.backward_weight: a list of 1 for 2 stages; give 2 entries, or one number for all"},
        {"ActivationListLength",
         {"stages.activation=[1B]"},
         "stages.activation: a list of 1 for 2 stages; give 2 entries, or one number for all"},
        {"MessageListLength",
         {"links.message=[1B]"},
         "links.message: a list of 1 for 2 stages; give 2 entries, or one number for all"},
        {"LimitListLength",
         {"stages.activation=1B", "memory.limit=[1B, 1B, 1B]"},
         "memory.limit: a list of 3 for 2 ranks; give 2 entries, or one number for all"},
        {"LimitActivationsListLength",
         {"memory.limit_activations=[1]"},
         "memory.limit_activations: a list of 1 for 2 ranks; give 2 entries, or one number for "
         "all"},
        {"StaticListIsEmpty",
         {"memory.static=[]"},
         "memory.static: a list of 0 for 2 ranks; give 2 entries, or one number for all"},
        {"WeightActivationAboveActivation",
         {"stages.activation=[2B, 1B]", "stages.weight_activation=2B"},
         "stages.weight_activation: 2B of stage 1 is more than its activation of 1B, of which it "
         "is a part; lower it"},
        {"EdgeOutOfRange",
         {"stages.graph=[[0, 1], [1, 2]]"},
         "stages.graph: there is no stage 2; name one of the 2 stages, 0 to 1"},
        {"StageOnNoEdge",
         {"stages.graph=[]"},
         "stages.graph: stage 0 is on no edge; connect each of the 2 stages"},
        {"FrozenOutOfRange",
         {"stages.frozen=[2]"},
         "stages.frozen: there is no stage 2; name one of the 2 stages, 0 to 1"},
        {"PairStageOutOfRange",
         {"stages.overlapped={pairs: [[0, 1, 1ms], [0, 2, 1ms]]}"},
         "stages.overlapped: there is no stage 2; name one of the 2 stages, 0 to 1"},
        {"TooMuchWork",
         {"pipeline.ranks=64", "pipeline.microbatches=1000000"},
         "pipeline.microbatches: 1000000 microbatches on 64 stages are 64000000 forwards; at most "
         "33554432 are possible, so lower one of them"},
    }),
    case_name<OverrideCase>);

// What overflows is a sum over the run, so no single key is to blame.
TEST(MakeProblemTotals, AreBelowTwoToThe62) {
  const std::string time =
      "model.yaml:2:9: stages: the durations of the whole run sum to 2^62 ns (146 years) or more; "
      "check their units";
  EXPECT_EQ(refusal(kGoodConfig, {"stages.forward=4e9s"}), time);
  EXPECT_EQ(refusal(kGoodConfig, {"stages.overlapped=4e9s"}), time);
  EXPECT_EQ(refusal(kGoodConfig,
                    {"stages.forward=4e7s", "pipeline.microbatches={count: 1, scale: [1000]}"}),
            time);
  EXPECT_EQ(refusal(kGoodConfig, {"links.latency=4e9s"}), time);
  EXPECT_NE(refusal(kGoodConfig, {"optimizer={gradients: 4KiB, step: 4e9s}"})
                .find("optimizer: the durations of the whole run sum to 2^62 ns"),
            std::string::npos);
  EXPECT_EQ(refusal(kGoodConfig, {"links.message=1TB", "links.bandwidth=1e-9B/s"}), time);
  EXPECT_EQ(refusal(kGoodConfig, {"stages.activation=4000000TiB"}),
            "model.yaml:2:9: stages: the sizes of the whole run sum to 2^62 bytes (4 EiB) or more; "
            "check their units");
}

TEST(MakeProblemTotals, ReachCloseToTheLimit) {
  EXPECT_EQ(refusal(kGoodConfig, {"stages.forward=5e8s"}), "accepted");
  EXPECT_EQ(refusal(kGoodConfig, {"stages.activation=500000TiB"}), "accepted");
}

TEST(MakeProblemBackward, BackwardCostsAreMissing) {
  const std::string pipeline = "pipeline: {ranks: 2, microbatches: 4, schedule: 1f1b}\n";
  const std::string rule =
      ": missing; the schedule 1f1b has a backward, so give its cost, or use schedule: "
      "forward-only";
  EXPECT_EQ(refusal(pipeline + "stages: {forward: 1ms, backward_weight: 1ms}\n"),
            "model.yaml:2:9: stages.backward_input" + rule);
  EXPECT_EQ(refusal(pipeline + "stages: {forward: 1ms, backward_input: 1ms}\n"),
            "model.yaml:2:9: stages.backward_weight" + rule);
}

}  // namespace
}  // namespace counterflow::testing
