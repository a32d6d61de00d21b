#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/error/config_cases.h"

namespace counterflow::testing {
namespace {

class SectionError : public ::testing::TestWithParam<OverrideCase> {};

TEST_P(SectionError, IsRefused) {
  const OverrideCase& c = GetParam();
  EXPECT_EQ(refusal(kGoodConfig, c.overrides), "--set " + c.overrides.back() + ": " + c.message);
}

INSTANTIATE_TEST_SUITE_P(
    Stages, SectionError,
    ::testing::ValuesIn(std::vector<OverrideCase>{
        {"OverlappedIsAList",
         {"stages.overlapped=[1ms]"},
         "stages.overlapped: a list is not a duration; write a decimal number with a unit, for "
         "example 18.522ms"},
        {"OverlappedIsAnEmptyMap",
         {"stages.overlapped={}"},
         "stages.overlapped: an empty map; give default, pairs or both"},
        {"OverlappedPairOfTwo",
         {"stages.overlapped={pairs: [[0, 1]]}"},
         "stages.overlapped.pairs[0]: a list of 2 is not an entry [forward stage, backward stage, "
         "cost]"},
        {"OverlappedPairIsANumber",
         {"stages.overlapped={pairs: [3ms]}"},
         "stages.overlapped.pairs[0]: 3ms is not an entry [forward stage, backward stage, cost]"},
        {"OverlappedPairsIsANumber",
         {"stages.overlapped={pairs: 3ms}"},
         "stages.overlapped.pairs: 3ms is not a list; write a list of entries [forward stage, "
         "backward stage, cost]"},
        {"OverlappedPairTwice",
         {"stages.overlapped={pairs: [[0, 1, 1ms], [0, 1, 2ms]]}"},
         "stages.overlapped.pairs[1]: the pair 0, 1 is given twice; remove one"},
        {"OverlappedPairIsNegative",
         {"stages.overlapped={pairs: [[0, 1, -1ms]]}"},
         "stages.overlapped.pairs[0][2]: -1ms is negative; a duration is zero or more, for example "
         "18.522ms"},
        {"GraphIsAMap",
         {"stages.graph={a: 1}"},
         "stages.graph: a map is not a list; write a list of edges [from, to]"},
        {"EdgeOfThree",
         {"stages.graph=[[0, 1, 2]]"},
         "stages.graph[0]: a list of 3 is not an edge [from, to]"},
        {"EdgeDescends",
         {"stages.graph=[[1, 0]]"},
         "stages.graph[0]: the edge 1 to 0 does not ascend; number the stages so that each feeds "
         "only higher ones"},
        {"EdgeToItself",
         {"stages.graph=[[1, 1]]"},
         "stages.graph[0]: the edge 1 to 1 does not ascend; number the stages so that each feeds "
         "only higher ones"},
        {"EdgeTwice",
         {"stages.graph=[[0, 1], [0, 1]]"},
         "stages.graph[1]: the edge 0 to 1 is given twice; remove one"},
        {"FrozenIsANumber",
         {"stages.frozen=1"},
         "stages.frozen: 1 is not a list; write a list of stage numbers"},
        {"FrozenTwice", {"stages.frozen=[1, 1]"}, "stages.frozen[1]: 1 is given twice; remove one"},
        {"FrozenIsNegative",
         {"stages.frozen=[-1]"},
         "stages.frozen[0]: -1 is out of range; write a whole number from 0 to 65534"},
        {"WeightActivationAlone",
         {"stages.weight_activation=1B"},
         "stages.weight_activation: given without stages.activation, of which it is a part; give "
         "both"},
    }),
    case_name<OverrideCase>);

INSTANTIATE_TEST_SUITE_P(
    Links, SectionError,
    ::testing::ValuesIn(std::vector<OverrideCase>{
        {"LatencyRowsMissing",
         {"links.latency=[[0, 1us]]"},
         "links.latency: a list of 1 is not a table of 2 rows of 2 ranks"},
        {"LatencyRowTooShort",
         {"links.latency=[[0, 1us], [1us]]"},
         "links.latency[1]: a list of 1 is not a row of 2 ranks"},
        {"LatencyIsAFlatList",
         {"links.latency=[1us, 1us]"},
         "links.latency[0]: 1us is not a row of 2 ranks"},
        {"LatencyWithinARank",
         {"links.latency=[[1us, 1us], [1us, 0]]"},
         "links.latency[0][0]: a hop inside a rank is free; write 0"},
        {"LatencyPairsMissing",
         {"links.latency={default: 1us}"},
         "links.latency.pairs: missing; write for example pairs: [[0, 1, 5us]]"},
        {"LatencyPairWithinARank",
         {"links.latency={pairs: [[1, 1, 1us]]}"},
         "links.latency.pairs[0]: a hop inside a rank is free; name two ranks"},
        {"LatencyPairTwice",
         {"links.latency={pairs: [[0, 1, 1us], [0, 1, 2us]]}"},
         "links.latency.pairs[1]: the ranks 0, 1 are given twice; remove one"},
        {"LatencyPairOutOfRange",
         {"links.latency={pairs: [[0, 2, 1us]]}"},
         "links.latency.pairs[0][1]: 2 is out of range; write a whole number from 0 to 1"},
        {"LatencyTableOfTooManyRanks",
         {"pipeline.ranks=5000", "links.latency={pairs: []}"},
         "links.latency: a table by rank pair takes at most 4096 ranks, not 5000; give one latency "
         "for all"},
        {"BandwidthWithoutMessage",
         {"links.bandwidth=50GB/s"},
         "links.bandwidth: given without links.message, the size it carries; add for example "
         "message: 56MiB"},
        {"BandwidthHasNoUnit",
         {"links.message=1B", "links.bandwidth=50"},
         "links.bandwidth: 50 has no unit; write one of B/s, KB/s, MB/s, GB/s, TB/s, KiB/s, MiB/s, "
         "GiB/s, TiB/s, Kb/s, Mb/s, Gb/s, Tb/s after it, for example 50GB/s"},
        {"BandwidthIsZero",
         {"links.message=1B", "links.bandwidth=0GB/s"},
         "links.bandwidth: 0GB/s is zero; a rate is above zero, for example 50GB/s; leave it out "
         "for no limit"},
        {"BandwidthIsASize",
         {"links.message=1B", "links.bandwidth=50GB"},
         "links.bandwidth: 50GB has the unknown unit GB; did you mean GB/s? The units of a rate "
         "are B/s, KB/s, MB/s, GB/s, TB/s, KiB/s, MiB/s, GiB/s, TiB/s, Kb/s, Mb/s, Gb/s, Tb/s"},
    }),
    case_name<OverrideCase>);

INSTANTIATE_TEST_SUITE_P(
    ExecutionAndMemory, SectionError,
    ::testing::ValuesIn(std::vector<OverrideCase>{
        {"ExecutionIsUnknown",
         {"execution=nvcl"},
         "execution: nvcl is not one of ideal, nccl, gloo; did you mean nccl?"},
        {"PresetIsUnknown",
         {"execution.preset=mpi"},
         "execution.preset: mpi is not one of ideal, nccl, gloo"},
        {"SemanticsIsUnknown",
         {"execution.semantics=eager"},
         "execution.semantics: eager is not one of buffered, posted, rendezvous"},
        {"SemanticsIsANumber",
         {"execution.semantics=7"},
         "execution.semantics: 7 is not one of buffered, posted, rendezvous"},
        {"LaunchOrderIsUnknown",
         {"execution.launch_order=chain"},
         "execution.launch_order: chain is not one of independent, chained, serial; did you mean "
         "chained?"},
        {"BooleanIsOn",
         {"execution.independent_transfers=on"},
         "execution.independent_transfers: on is not one of true, false"},
        {"BooleanIsQuoted",
         {"execution.serial_communicators=\"true\""},
         "execution.serial_communicators: \"true\" is text; write true without quotes"},
        {"HardwareQueuesIsNegative",
         {"execution.hardware_queues=-1"},
         "execution.hardware_queues: -1 is out of range; write a whole number from 0 to 1024"},
        {"LimitWithoutActivation",
         {"memory.limit=1GiB"},
         "memory.limit: given without stages.activation, so there is nothing to limit; add for "
         "example activation: 100MiB, or use memory.limit_activations"},
        {"LimitActivationsIsASize",
         {"memory.limit_activations=8GiB"},
         "memory.limit_activations: 8GiB is not a whole number; write one from 1 to 2147483647"},
        {"LimitActivationsIsZero",
         {"memory.limit_activations=0"},
         "memory.limit_activations: 0 is out of range; write a whole number from 1 to 2147483647"},
    }),
    case_name<OverrideCase>);

}  // namespace
}  // namespace counterflow::testing
