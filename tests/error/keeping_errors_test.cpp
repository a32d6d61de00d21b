#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/error/config_cases.h"

// stages.recompute, stages.offload and pipeline.keep_together said wrong.
namespace counterflow::testing {
namespace {

class KeepingError : public ::testing::TestWithParam<OverrideCase> {};

TEST_P(KeepingError, IsRefused) {
  const OverrideCase& c = GetParam();
  EXPECT_EQ(refusal(kGoodConfig, c.overrides), "--set " + c.overrides.back() + ": " + c.message);
}

const std::string kActivation = "stages.activation=8B";

INSTANTIATE_TEST_SUITE_P(
    Keeping, KeepingError,
    ::testing::ValuesIn(std::vector<OverrideCase>{
        {"WithoutActivations",
         {"stages.recompute={activation: 1B}"},
         "stages.recompute: given without stages.activation, of which it keeps a part; give both"},
        {"UnknownKey",
         {kActivation, "stages.recompute={activation: 1B, times: 1ms}"},
         "stages.recompute.times: unknown key; did you mean time?"},
        {"RecomputeHasNoBandwidth",
         {kActivation, "stages.recompute={activation: 1B, bandwidth: 1GB/s}"},
         "stages.recompute.bandwidth: unknown key; the keys here are time, activation, always"},
        {"NothingKeptSaid",
         {kActivation, "stages.recompute={time: 1ms}"},
         "stages.recompute.activation: missing; write for example activation: 2MiB"},
        {"KeepsAll",
         {kActivation, "stages.recompute={activation: 8B}"},
         "stages.recompute.activation: stage 0 would keep 8 B of an activation of 8 B; give less "
         "than that, or leave stages.recompute out"},
        {"WrongLength",
         {kActivation, "stages.offload={time: 1ms, activation: [1B, 1B, 1B]}"},
         "stages.offload.activation: a list of 3 for 2 stages; give 2 entries, or one number for "
         "all"},
        {"NeitherTimeNorBandwidth",
         {kActivation, "stages.offload={activation: 1B}"},
         "stages.offload: takes either the time of a copy that compute does not hide, or the "
         "bandwidth of the link to the host; give one of time and bandwidth"},
        {"TimeAndBandwidth",
         {kActivation, "stages.offload={activation: 1B, time: 1ms, bandwidth: 1GB/s}"},
         "stages.offload: takes either the time of a copy that compute does not hide, or the "
         "bandwidth of the link to the host; give one of time and bandwidth"},
        {"AlwaysNoSuchStage",
         {kActivation, "stages.recompute={activation: 1B, always: [2]}"},
         "stages.recompute.always: there is no stage 2; name one of the 2 stages, 0 to 1"},
        {"AlwaysTwice",
         {kActivation, "stages.recompute={activation: 1B, always: [1, 1]}"},
         "stages.recompute.always[1]: 1 is given twice; remove one"},
        {"AlwaysAWord",
         {kActivation, "stages.recompute={activation: 1B, always: every}"},
         "stages.recompute.always: every is not a list; write a list of stage numbers such as "
         "[0, 1], or the word all"},
        {"AlwaysBoth",
         {kActivation, "stages.recompute={activation: 1B, always: all}",
          "stages.offload={activation: 1B, time: 1ms, always: [1]}"},
         "stages.offload.always: stage 1 also recomputes always; take it out of one of the two"},
        {"NegativeTime",
         {kActivation, "stages.recompute={activation: 1B, time: -1ms}"},
         "stages.recompute.time: -1ms is negative; a duration is zero or more, for example "
         "18.522ms"},
        {"BesideLayers",
         {kActivation, "layers=[{forward: 1ms}]", "stages.recompute={activation: 1B}"},
         "stages.recompute: not possible with layers: whole stages recompute or offload; give "
         "stages in the place of layers"},
        {"TogetherApart",
         {"pipeline.keep_together=[[0, 1]]"},
         "pipeline.keep_together: stages 0 and 1 do not share a rank: they are on ranks 0 and 1; "
         "give pipeline.placement as a list with them on one rank, or v for the first and the last "
         "stage"},
        {"TogetherNoSuchStage",
         {"pipeline.keep_together=[[0, 2]]"},
         "pipeline.keep_together: there is no stage 2; name one of the 2 stages, 0 to 1"},
        {"TogetherAlone",
         {"pipeline.keep_together=[[0]]"},
         "pipeline.keep_together[0]: a group of 1; name two at least that must share a rank"},
    }),
    case_name<OverrideCase>);

TEST(KeepingOfLayers, IsRefused) {
  EXPECT_EQ(refusal("pipeline: {ranks: 2, microbatches: 4, schedule: 1f1b}\n"
                    "layers:\n"
                    "  - {forward: 1ms, offload: {activation: 1B, time: 1ms}}\n"),
            "model.yaml:3:29: layers[0].offload: not possible with layers: whole stages recompute "
            "or offload; give stages in the place of layers");
}

}  // namespace
}  // namespace counterflow::testing
