#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/error/config_cases.h"

namespace counterflow::testing {
namespace {

class ConfigError : public ::testing::TestWithParam<OverrideCase> {};

TEST_P(ConfigError, IsRefused) {
  const OverrideCase& c = GetParam();
  EXPECT_EQ(refusal(kGoodConfig, c.overrides), "--set " + c.overrides.back() + ": " + c.message);
}

INSTANTIATE_TEST_SUITE_P(
    Pipeline, ConfigError,
    ::testing::ValuesIn(std::vector<OverrideCase>{
        {"MisspeltSection", {"stage.forward=1ms"}, "stage: unknown key; did you mean stages?"},
        {"MisspeltKey", {"pipeline.rank=1"}, "pipeline.rank: unknown key; did you mean ranks?"},
        {"MisspeltStageKey",
         {"stages.foward=1ms"},
         "stages.foward: unknown key; did you mean forward?"},
        {"BeginningOfTwoKeys",
         {"stages={forward: 1ms, backward: 2ms}"},
         "stages.backward: unknown key; did you mean backward_input or backward_weight?"},
        {"OneLetter",
         {"a=1"},
         "a: unknown key; the keys here are pipeline, stages, layers, layout, links, execution, "
         "memory, units, topology, jitter, optimizer"},
        {"NotNearAnyKey",
         {"foo=1"},
         "foo: unknown key; the keys here are pipeline, stages, layers, layout, links, execution, "
         "memory, units, topology, jitter, optimizer"},
        {"KeyOfAScenario",
         {"slow=[]"},
         "slow: unknown key; the keys here are pipeline, stages, layers, layout, links, execution, "
         "memory, units, topology, jitter, optimizer"},
        {"ExecutionKeyNotNearAny",
         {"execution={foo: 1}"},
         "execution.foo: unknown key; the keys here are preset, semantics, independent_transfers, "
         "serial_communicators, launch_order, hardware_queues"},
        {"MisspeltScaleKind",
         {"pipeline.microbatches={count: 1, scale: {backward: [1]}}"},
         "pipeline.microbatches.scale.backward: unknown key; did you mean backward_input or "
         "backward_weight?"},
        {"MisspeltMicrobatchesKey",
         {"pipeline.microbatches={number: 1}"},
         "pipeline.microbatches.number: unknown key; the keys here are count, scale"},
        {"MisspeltLinksKey",
         {"links.latncy=1ms"},
         "links.latncy: unknown key; did you mean latency?"},
        {"MisspeltExecutionKey",
         {"execution.semantic=posted"},
         "execution.semantic: unknown key; did you mean semantics?"},
        {"MisspeltMemoryKey",
         {"memory.limits=1B"},
         "memory.limits: unknown key; did you mean limit?"},
        {"MisspeltUnitsKey", {"units.times=ms"}, "units.times: unknown key; did you mean time?"},
        {"LayersBesideStages",
         {"layers=1"},
         "layers: given beside stages, which they stand in for; keep one of the two"},
        {"LayoutWithoutLayers",
         {"layout=1"},
         "layout: given without layers, which it cuts; add them"},
        {"ReservedBlocks",
         {"stages.blocks=1"},
         "stages.blocks: this key is reserved and not supported by this version; remove it"},
        {"NoCount",
         {"pipeline.microbatches={scale: [1]}"},
         "pipeline.microbatches.count: missing; write for example count: 24"},
        {"PipelineIsAList",
         {"pipeline=[1]"},
         "pipeline: a list is not a map; write keys below it, such as ranks: ..."},
        {"StagesIsANumber",
         {"stages=3"},
         "stages: 3 is not a map; write keys below it, such as forward: ..."},
        {"StagesIsEmpty",
         {"stages="},
         "stages: an empty value is not a map; write keys below it, such as forward: ..."},
        {"LinksIsEmpty",
         {"links="},
         "links: an empty value is not a map; write keys below it, such as latency: ..."},
        {"ExecutionIsAList",
         {"execution=[nccl]"},
         "execution: a list is not one of ideal, nccl, gloo"},
        {"MemoryIsASize",
         {"memory=40GiB"},
         "memory: 40GiB is not a map; write keys below it, such as limit: ..."},
        {"UnitsIsAWord",
         {"units=ms"},
         "units: ms is not a map; write keys below it, such as time: ..."},
        {"RanksIsAList",
         {"pipeline.ranks=[2]"},
         "pipeline.ranks: a list is not a whole number; write one from 1 to 65535"},
        {"RanksIsAMap",
         {"pipeline.ranks={a: 2}"},
         "pipeline.ranks: a map is not a whole number; write one from 1 to 65535"},
        {"RanksIsEmpty",
         {"pipeline.ranks="},
         "pipeline.ranks: an empty value is not a whole number; write one from 1 to 65535"},
        {"RanksIsQuoted",
         {"pipeline.ranks=\"2\""},
         "pipeline.ranks: \"2\" is text; write 2 without quotes"},
        {"RanksIsFractional",
         {"pipeline.ranks=2.0"},
         "pipeline.ranks: 2.0 is not a whole number; write one from 1 to 65535"},
        {"RanksIsZero",
         {"pipeline.ranks=0"},
         "pipeline.ranks: 0 is out of range; write a whole number from 1 to 65535"},
        {"RanksIsNegative",
         {"pipeline.ranks=-2"},
         "pipeline.ranks: -2 is out of range; write a whole number from 1 to 65535"},
        {"RanksIsTooLarge",
         {"pipeline.ranks=65536"},
         "pipeline.ranks: 65536 is out of range; write a whole number from 1 to 65535"},
        {"MicrobatchesIsTooLarge",
         {"pipeline.microbatches=1000001"},
         "pipeline.microbatches: 1000001 is out of range; write a whole number from 1 to 1000000"},
        {"ChunksIsZero",
         {"pipeline.chunks=0"},
         "pipeline.chunks: 0 is out of range; write a whole number from 1 to 65535"},
        {"GroupSizeIsZero",
         {"pipeline.group_size=0"},
         "pipeline.group_size: 0 is out of range; write a whole number from 1 to 1000000"},
        {"TooManyStages",
         {"pipeline.ranks=300", "pipeline.chunks=300"},
         "pipeline.chunks: 300 ranks of 300 chunks are 90000 stages; at most 65535 are possible, "
         "so lower one"},
        {"ChunksBesidePlacementList",
         {"pipeline.placement=[0, 1]", "pipeline.chunks=1"},
         "pipeline.chunks: given beside a placement list, which already says each rank's stages; "
         "remove one"},
        {"ScheduleIsEmpty",
         {"pipeline.schedule=\"\""},
         "pipeline.schedule: '' is not a schedule; write a name such as 1f1b, or the path of a "
         ".csv file"},
        {"ScheduleIsAList",
         {"pipeline.schedule=[a]"},
         "pipeline.schedule: a list is not a schedule; write a name such as 1f1b, or the path of a "
         ".csv file"},
        {"ScaleIsANumber",
         {"pipeline.microbatches={count: 2, scale: 1.5}"},
         "pipeline.microbatches.scale: 1.5 is not a list; write a list of factors, one a "
         "microbatch"},
        {"ScaleOfWrongLength",
         {"pipeline.microbatches={count: 2, scale: [1, 1, 1]}"},
         "pipeline.microbatches.scale: a list of 3 for 2 microbatches; give one factor a "
         "microbatch"},
        {"ScaleKindOfWrongLength",
         {"pipeline.microbatches={count: 2, scale: {activation: [1]}}"},
         "pipeline.microbatches.scale.activation: a list of 1 for 2 microbatches; give one factor "
         "a microbatch"},
        {"ScaleIsNegative",
         {"pipeline.microbatches={count: 2, scale: [1, -1]}"},
         "pipeline.microbatches.scale[1]: -1 is negative; a factor is from 0 to 1e9, for example "
         "1.7"},
        {"ScaleIsNaN",
         {"pipeline.microbatches={count: 2, scale: [1, .nan]}"},
         "pipeline.microbatches.scale[1]: .nan is not a number; a factor is from 0 to 1e9, for "
         "example 1.7"},
        {"PlacementIsUnknown",
         {"pipeline.placement=vee"},
         "pipeline.placement: vee is not one of loop, v, wave, bidirectional; did you mean v?"},
        {"PlacementIsAMap",
         {"pipeline.placement={a: 1}"},
         "pipeline.placement: a map is not one of loop, v, wave, bidirectional"},
        {"PlacementRankOutOfRange",
         {"pipeline.placement=[0, 2]"},
         "pipeline.placement[1]: 2 is out of range; write a whole number from 0 to 1"},
        {"PlacementLeavesARankIdle",
         {"pipeline.placement=[1, 1]"},
         "pipeline.placement: rank 0 holds no stage; give every one of the 2 ranks a stage, or "
         "lower pipeline.ranks"},
        {"SplitBackwardIsYes",
         {"pipeline.split_backward=yes"},
         "pipeline.split_backward: yes is not one of auto, true, false"},
        {"SplitBackwardIsAList",
         {"pipeline.split_backward=[true]"},
         "pipeline.split_backward: a list is not one of auto, true, false"},
    }),
    case_name<OverrideCase>);

INSTANTIATE_TEST_SUITE_P(
    Quantities, ConfigError,
    ::testing::ValuesIn(std::vector<OverrideCase>{
        {"DurationIsNegative",
         {"stages.forward=-3ms"},
         "stages.forward: -3ms is negative; a duration is zero or more, for example 18.522ms"},
        {"DurationHasNoUnit",
         {"stages.forward=3"},
         "stages.forward: 3 has no unit; write one of ns, us, ms, s after it, for example "
         "3ms, or say units: {time: ms} once"},
        {"DurationHasAnUnknownUnit",
         {"stages.forward=3msec"},
         "stages.forward: 3msec has the unknown unit msec; did you mean ms? The units of a "
         "duration are ns, us, ms, s"},
        {"DurationHasAUnitNearNone",
         {"stages.forward=3parsec"},
         "stages.forward: 3parsec has the unknown unit parsec; the units of a duration are ns, us, "
         "ms, s"},
        {"DurationHasAUnitOfOneWrongLetter",
         {"stages.forward=3x"},
         "stages.forward: 3x has the unknown unit x; the units of a duration are ns, us, ms, s"},
        {"SizeHasTheBeginningOfAUnit",
         {"stages.activation=100M"},
         "stages.activation: 100M has the unknown unit M; did you mean MiB or MB? The units of a "
         "size are B, KiB, MiB, GiB, TiB, KB, MB, GB, TB"},
        {"DurationIsNaN",
         {"stages.forward=.nan"},
         "stages.forward: .nan is not a duration; write a decimal number with a unit, for example "
         "18.522ms"},
        {"DurationIsInfinite",
         {"stages.forward=.inf"},
         "stages.forward: .inf is not a duration; write a decimal number with a unit, for example "
         "18.522ms"},
        {"DurationIsTooLarge",
         {"stages.forward=1e30s"},
         "stages.forward: 1e30s is too large; a duration is below 2^62 ns, for example 18.522ms"},
        {"DurationIsAMap",
         {"stages.forward={a: 1}"},
         "stages.forward: a map is not a duration; write a decimal number with a unit, for example "
         "18.522ms"},
        {"DurationIsEmpty",
         {"stages.forward="},
         "stages.forward: an empty value is not a duration; write a decimal number with a unit, "
         "for example 18.522ms"},
        {"DurationInAListIsAList",
         {"stages.forward=[1ms, [1ms]]"},
         "stages.forward[1]: a list is not a duration; write a decimal number with a unit, for "
         "example 18.522ms"},
        {"DurationInAListIsNegative",
         {"stages.backward_input=[1ms, -1ms]"},
         "stages.backward_input[1]: -1ms is negative; a duration is zero or more, for example "
         "18.522ms"},
        {"TimeUnitIsUnknown",
         {"units.time=sec"},
         "units.time: sec is not one of ns, us, ms, s; did you mean s?"},
        {"StagesTimeUnitIsAList",
         {"stages.time_unit=[ms]"},
         "stages.time_unit: a list is not one of ns, us, ms, s"},
        {"TimeUnitsDiffer",
         {"units.time=ms", "stages.time_unit=us"},
         "stages.time_unit: us contradicts units.time, which is ms; keep one of them"},
        {"SizeHasNoUnit",
         {"stages.activation=100"},
         "stages.activation: 100 has no unit; write one of B, KiB, MiB, GiB, TiB, KB, MB, GB, TB "
         "after it, for example 100MiB"},
        {"SizeHasAnUnknownUnit",
         {"stages.activation=100mb"},
         "stages.activation: 100mb has the unknown unit mb; did you mean MB? The units of a size "
         "are B, KiB, MiB, GiB, TiB, KB, MB, GB, TB"},
        {"SizeIsNegative",
         {"memory.static=-1B"},
         "memory.static: -1B is negative; a size is zero or more, for example 100MiB"},
    }),
    case_name<OverrideCase>);

}  // namespace
}  // namespace counterflow::testing
