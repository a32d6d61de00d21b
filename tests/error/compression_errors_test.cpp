#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/error/config_cases.h"

namespace counterflow::testing {
namespace {

class CompressionError : public ::testing::TestWithParam<OverrideCase> {};

TEST_P(CompressionError, IsRefused) {
  const OverrideCase& c = GetParam();
  EXPECT_EQ(refusal(kGoodConfig, c.overrides), "--set " + c.overrides.back() + ": " + c.message);
}

INSTANTIATE_TEST_SUITE_P(
    Config, CompressionError,
    ::testing::ValuesIn(std::vector<OverrideCase>{
        {"NoMessage",
         {"links.compress=fp8"},
         "links.compress: given without links.message, the size it carries; add for example "
         "message: 56MiB"},
        {"UnknownType",
         {"links.message=4KiB", "links.compress=fp16"},
         "links.compress: fp16 is not one of bf16, fp8; did you mean bf16?"},
        {"AList",
         {"links.message=4KiB", "links.compress=[fp8]"},
         "links.compress: a list is not one of bf16, fp8"},
        {"UnknownKey",
         {"links.message=4KiB", "links.compress={activation: fp8}"},
         "links.compress.activation: unknown key; did you mean activations?"},
        {"UnknownTypeOfGradients",
         {"links.message=4KiB", "links.compress={gradients: fp32}"},
         "links.compress.gradients: fp32 is not one of bf16, fp8; did you mean fp8?"},
        {"Nothing",
         {"links.message=4KiB", "links.compress={rate: 1GB/s}"},
         "links.compress: compresses nothing; add for example activations: fp8"},
        {"NoRate",
         {"links.message=4KiB", "links.compress={activations: fp8, rate: 0GB/s}"},
         "links.compress.rate: 0GB/s is zero; a rate is above zero, for example 50GB/s; leave it "
         "out for no limit"},
        {"NoRateAndNoUnit",
         {"links.message=4KiB", "links.compress={activations: fp8, rate: 0}"},
         "links.compress.rate: 0 is zero; a rate is above zero, for example 50GB/s; leave it out "
         "for no limit"},
        {"HalfAnElement",
         {"links.message=[4KiB, 6B]", "links.compress=bf16"},
         "links.compress: the message of stage 1 has 6 B, which are no whole number of FP32 "
         "elements; give it a multiple of 4 B"},
    }),
    case_name<OverrideCase>);

TEST(CompressionErrors, NameTheLine) {
  EXPECT_EQ(refusal("pipeline: {ranks: 2, microbatches: 4, schedule: 1f1b}\n"
                    "stages: {forward: 1ms, backward_input: 2ms, backward_weight: 3ms}\n"
                    "links:\n"
                    "  message: 6B\n"
                    "  compress: fp8\n"),
            "model.yaml:5:13: links.compress: the message of stage 0 has 6 B, which are no whole "
            "number of FP32 elements; give it a multiple of 4 B");
}

}  // namespace
}  // namespace counterflow::testing
