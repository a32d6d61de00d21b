#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/error/config_cases.h"

namespace counterflow::testing {
namespace {

class OptimizerError : public ::testing::TestWithParam<OverrideCase> {};

TEST_P(OptimizerError, IsRefused) {
  const OverrideCase& c = GetParam();
  const std::string message = refusal(kGoodConfig, c.overrides);
  // A long one is cut short.
  EXPECT_EQ(message.find("--set " + c.overrides.back().substr(0, 60)), 0U) << message;
  EXPECT_TRUE(message.ends_with(": " + c.message)) << message;
}

INSTANTIATE_TEST_SUITE_P(
    Config, OptimizerError,
    ::testing::ValuesIn(std::vector<OverrideCase>{
        {"UnknownKey",
         {"optimizer={gradients: 1MiB, buckets: 1MiB}"},
         "optimizer.buckets: unknown key; did you mean bucket?"},
        {"NoPipelines",
         {"optimizer={gradients: 4B, data_parallel: 0}"},
         "optimizer.data_parallel: 0 is out of range; write a whole number from 1 to 128"},
        {"TooManyPipelines",
         {"optimizer={gradients: 4B, data_parallel: 129}"},
         "optimizer.data_parallel: 129 is out of range; write a whole number from 1 to 128"},
        {"NoGradients",
         {"optimizer={step: 1ms}"},
         "optimizer.gradients: missing; write for example gradients: 350MiB"},
        {"NoSuchValidation",
         {"optimizer={gradients: 4B, global_norm: true, validation: never}"},
         "optimizer.validation: never is not one of before, after"},
        {"ValidationOfNoNorm",
         {"optimizer={gradients: 4B, validation: after}"},
         "optimizer.validation: after is how steps go by the norm of all gradients; set "
         "global_norm: true as well, or leave it out"},
        {"CostOfNoValidation",
         {"optimizer={gradients: 4B, global_norm: true, validate: 1ms}"},
         "optimizer.validate: VALIDATE runs only where steps do not wait for the norm; set "
         "validation: after, or leave it out"},
        {"SnapshotForNoValidation",
         {"optimizer={gradients: 4B, global_norm: true, validation: before, snapshot: 4B}"},
         "optimizer.snapshot: parameters are kept only where steps do not wait for the norm; set "
         "validation: after, or leave it out"},
        {"WrongCountOfValidations",
         {"optimizer={gradients: 4B, global_norm: true, validation: after, validate: [1ms]}"},
         "optimizer.validate: a list of 1 for 2 stages; give 2 entries, or one number for all"},
        {"WrongCountOfSnapshots",
         {"optimizer={gradients: 4B, global_norm: true, validation: after, snapshot: [1B, 2B, "
          "3B]}"},
         "optimizer.snapshot: a list of 3 for 2 stages; give 2 entries, or one number for all"},
        {"NoWholeNumber",
         {"optimizer={gradients: 6B}"},
         "optimizer.gradients: 6 B are no whole number of FP32 gradients; give a multiple of 4 B"},
        {"WrongCount",
         {"optimizer={gradients: [1MiB, 1MiB, 1MiB]}"},
         "optimizer.gradients: a list of 3 for 2 stages; give 2 entries, or one number for all"},
        {"WrongCountOfSteps",
         {"optimizer={gradients: 1MiB, step: [1ms]}"},
         "optimizer.step: a list of 1 for 2 stages; give 2 entries, or one number for all"},
        {"TinyBucket",
         {"optimizer={gradients: 1MiB, bucket: 2B}"},
         "optimizer.bucket: smaller than one gradient of 4 B; give for example 25MiB, or leave it "
         "out"},
        {"TooManyBuckets",
         {"optimizer={gradients: 1MiB, bucket: 4B}"},
         "optimizer.bucket: 4 B cut the gradients of stage 0 into 262145 reductions; at most 1024 "
         "are possible, so raise it"},
        {"OneStageTied",
         {"optimizer={gradients: 1MiB}", "optimizer.tied=[{stages: [0], size: 1KiB}]"},
         "optimizer.tied[0].stages: name two stages at least: those that share parameters"},
        {"TiedTwice",
         {"optimizer={gradients: 1MiB}", "optimizer.tied=[{stages: [0, 1, 0], size: 1KiB}]"},
         "optimizer.tied[0].stages[2]: stage 0 is tied twice; keep one of them"},
        {"NoSuchStage",
         {"optimizer={gradients: 1MiB}", "optimizer.tied=[{stages: [0, 2], size: 1KiB}]"},
         "optimizer.tied: there is no stage 2; name one of the 2 stages, 0 to 1"},
        {"TiedTooLarge",
         {"optimizer={gradients: 1KiB}", "optimizer.tied=[{stages: [0, 1], size: 1MiB}]"},
         "optimizer.tied: 1048576 B are tied, but stage 0 has 1024 B of gradients, of which they "
         "are a part; lower the size"},
        {"ShardsOfOnePipeline",
         {"optimizer={gradients: 1KiB, fsdp: {parameters: 1KiB}}"},
         "optimizer.fsdp: parameters are sharded over pipelines side by side, and there is one; "
         "give optimizer.data_parallel: 2 or more, or leave fsdp out"},
        {"ShardsOfNoSize",
         {"optimizer={gradients: 1KiB, data_parallel: 2}", "optimizer.fsdp={prefetch: 1}"},
         "optimizer.fsdp.parameters: missing; write for example parameters: 175MiB"},
        {"WrongCountOfShardedStages",
         {"optimizer={gradients: 1KiB, data_parallel: 2}", "optimizer.fsdp={parameters: [1KiB]}"},
         "optimizer.fsdp.parameters: a list of 1 for 2 stages; give 2 entries, or one number for "
         "all"},
        {"ShardsWithValidation",
         {"optimizer={gradients: 1KiB, data_parallel: 2, global_norm: true, validation: after}",
          "optimizer.fsdp={parameters: 1KiB}"},
         "optimizer.fsdp: steps on shards are not validated after they were made; leave out "
         "optimizer.validation: after, or fsdp"},
        {"NegativePrefetch",
         {"optimizer={gradients: 1KiB, data_parallel: 2}",
          "optimizer.fsdp={parameters: 1KiB, prefetch: -1}"},
         "optimizer.fsdp.prefetch: -1 is out of range; write a whole number from 0 to 1024"},
        {"UnknownPolicy",
         {"optimizer={gradients: 1KiB, data_parallel: 2}",
          "optimizer.fsdp={parameters: 1KiB, reshard: after_using}"},
         "optimizer.fsdp.reshard: after_using is not one of after_use, never; did you mean "
         "after_use?"},
        {"UnknownShardingKey",
         {"optimizer={gradients: 1KiB, data_parallel: 2}", "optimizer.fsdp={parameter: 1KiB}"},
         "optimizer.fsdp.parameter: unknown key; did you mean parameters?"},
    }),
    case_name<OverrideCase>);

TEST(OptimizerConfig, Expands) {
  const Config config =
      parse_config(kGoodConfig, "model.yaml",
                   {"optimizer={gradients: [8KiB, 4KiB], bucket: 1KiB, step: 2ms, global_norm: "
                    "true, tied: [{stages: [1, 0], size: 400B}]}"});
  const Problem problem = make_problem(config, {Placement(PlacementKind::loop, 2, 1), false});
  ASSERT_TRUE(problem.optimizer);
  EXPECT_EQ(problem.optimizer->gradients, (std::vector<Bytes>{Bytes{8192}, Bytes{4096}}));
  EXPECT_EQ(problem.optimizer->bucket, Bytes{1024});
  EXPECT_EQ(problem.optimizer->step, std::vector<Time>(2, Time{2'000'000}));
  EXPECT_TRUE(problem.optimizer->global_norm);
  EXPECT_FALSE(problem.optimizer->validates());
  EXPECT_TRUE(problem.optimizer->snapshot.empty());
  ASSERT_EQ(problem.optimizer->tied.size(), 1U);
  EXPECT_EQ(problem.optimizer->tied[0].stages, (std::vector<Stage>{0, 1}));
}

TEST(OptimizerConfig, KeepsAsMuchAsThereAreGradientsUnlessItIsSaid) {
  const auto optimizer = [](const std::string& more) {
    const Config config = parse_config(
        kGoodConfig, "model.yaml",
        {"optimizer={gradients: [8KiB, 4KiB], global_norm: true, validation: after" + more + "}"});
    return *make_problem(config, {Placement(PlacementKind::loop, 2, 1), false}).optimizer;
  };
  EXPECT_TRUE(optimizer("").validates());
  EXPECT_EQ(optimizer("").snapshot, (std::vector<Bytes>{Bytes{8192}, Bytes{4096}}));
  EXPECT_EQ(optimizer("").validate, std::vector<Time>(2, Time{0}));
  EXPECT_EQ(optimizer(", snapshot: [1B, 0B], validate: 3us").snapshot,
            (std::vector<Bytes>{Bytes{1}, Bytes{0}}));
  EXPECT_EQ(optimizer(", validate: [3us, 0us]").validate, (std::vector<Time>{Time{3000}, Time{0}}));
}

TEST(OptimizerConfig, ExpandsShards) {
  const Config config = parse_config(
      kGoodConfig, "model.yaml",
      {"optimizer={gradients: 8KiB, data_parallel: 3, fsdp: {parameters: [4KiB, 2KiB], reshard: "
       "never, prefetch: 2}}",
       "memory.static=[100B, 301B]"});
  const Problem problem = make_problem(config, {Placement(PlacementKind::loop, 2, 1), false});
  ASSERT_TRUE(problem.optimizer->sharding);
  const Sharding& sharding = *problem.optimizer->sharding;
  EXPECT_EQ(sharding.parameters, (std::vector<Bytes>{Bytes{4096}, Bytes{2048}}));
  EXPECT_EQ(sharding.reshard, Resharding::never);
  EXPECT_EQ(sharding.prefetch, 2);
  // A third of what is given, rounded up.
  EXPECT_EQ(problem.limits.static_memory, (std::vector<Bytes>{Bytes{34}, Bytes{101}}));
  // Both directions hold shards.
  const Problem both = make_problem(config, {Placement(PlacementKind::bidirectional, 2, 1), false});
  EXPECT_EQ(both.limits.static_memory, (std::vector<Bytes>{Bytes{17}, Bytes{51}}));
}

}  // namespace
}  // namespace counterflow::testing
