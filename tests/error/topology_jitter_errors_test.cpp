#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "scheduler/problem/scenario.h"
#include "scheduler/problem/text.h"
#include "tests/error/config_cases.h"

namespace counterflow::testing {
namespace {

class PhysicsError : public ::testing::TestWithParam<OverrideCase> {};

TEST_P(PhysicsError, IsRefused) {
  const OverrideCase& c = GetParam();
  EXPECT_EQ(refusal(kGoodConfig, c.overrides),
            "--set " + shown(c.overrides.back()) + ": " + c.message);
}

OverrideCase topology(std::string name, const std::string& value, std::string message) {
  return {std::move(name), {"links.message=1MiB", "topology=" + value}, std::move(message)};
}

INSTANTIATE_TEST_SUITE_P(
    Topology, PhysicsError,
    ::testing::ValuesIn(std::vector<OverrideCase>{
        {"NoMessage",
         {"topology={ranks_per_node: 1}"},
         "topology: given without links.message, the size it carries; add for example message: "
         "56MiB"},
        {"WithBandwidth",
         {"links={bandwidth: 1GB/s, message: 1MiB}", "topology={ranks_per_node: 1}"},
         "topology: given beside links.bandwidth, which gives every pair of ranks a link of its "
         "own; remove links.bandwidth"},
        topology("Empty", "{}",
                 "topology: says nothing; give ranks_per_node with node and nic, or links"),
        topology("UnknownKey", "{nod: 1}", "topology.nod: unknown key; did you mean node?"),
        topology("NicWithoutNodes", "{nic: {bandwidth: 1GB/s}}",
                 "topology.nic: given without nodes; add topology.ranks_per_node, for example 8"),
        topology("BothKindsOfNodes", "{ranks_per_node: 2, nodes: [0, 1]}",
                 "topology.nodes: given beside topology.ranks_per_node, which already says it; "
                 "keep one of them"),
        topology("NodesOfThree", "{nodes: [0, 1, 1]}",
                 "topology.nodes: a list of 3 for 2 ranks; give the node of each rank, for example "
                 "0"),
        topology("NoRanksPerNode", "{ranks_per_node: 0}",
                 "topology.ranks_per_node: 0 is out of range; write a whole number from 1 to "
                 "65535"),
        topology("EmptyTier", "{ranks_per_node: 1, nic: {}}",
                 "topology.nic: says nothing; give bandwidth, latency or both, for example "
                 "{bandwidth: 50GB/s}"),
        topology(
            "RateWithoutUnit", "{ranks_per_node: 1, nic: {bandwidth: 50}}",
            "topology.nic.bandwidth: 50 has no unit; write one of B/s, KB/s, MB/s, GB/s, TB/s, "
            "KiB/s, MiB/s, GiB/s, TiB/s, Kb/s, Mb/s, Gb/s, Tb/s after it, for example 50GB/s"),
        topology("LinkInsideARank", "{links: [{name: a, bandwidth: 1GB/s, pairs: [[1, 1]]}]}",
                 "topology.links[0].pairs[0]: a hop inside a rank crosses no link; name two ranks"),
        topology("PairTwice", "{links: [{name: a, bandwidth: 1GB/s, pairs: [[0, 1], [0, 1]]}]}",
                 "topology.links[0].pairs[1]: the pair 0, 1 is given twice; remove one"),
        topology("NameTwice",
                 "{links: [{name: a, bandwidth: 1GB/s, pairs: []}, {name: a, bandwidth: 1GB/s, "
                 "pairs: []}]}",
                 "topology.links[1].name: a is given to two links; rename one"),
    }),
    case_name<OverrideCase>);

OverrideCase jitter(std::string name, const std::string& value, std::string message) {
  return {std::move(name), {"jitter=" + value}, std::move(message)};
}

INSTANTIATE_TEST_SUITE_P(
    Jitter, PhysicsError,
    ::testing::ValuesIn(std::vector<OverrideCase>{
        jitter("UnknownKey", "{comput: 0.1}", "jitter.comput: unknown key; did you mean compute?"),
        jitter("SigmaTooLarge", "{compute: 5}",
               "jitter.compute: 5 is too large; sigma is a share of the cost from 0 to 1, for "
               "example 0.05"),
        jitter("SigmaNegative", "{compute: -0.1}",
               "jitter.compute: -0.1 is negative; a factor is zero or more, for example 1.7"),
        jitter("NoSigma", "{compute: {distribution: normal}}",
               "jitter.compute.sigma: missing; write for example sigma: 0.05"),
        jitter("Distribution", "{compute: {distribution: log-normal, sigma: 0.1}}",
               "jitter.compute.distribution: log-normal is not one of normal, lognormal, uniform, "
               "exponential; did you mean lognormal?"),
        jitter("RankThereIsNot", "{ranks: [{rank: 2, slow: 2}]}",
               "jitter.ranks[0].rank: 2 is out of range; write a whole number from 0 to 1"),
        jitter("RankTwice", "{ranks: [{rank: 1, slow: 2}, {rank: 1, slow: 3}]}",
               "jitter.ranks[1].rank: rank 1 is given twice; remove one"),
        jitter("RankOfNothing", "{ranks: [{rank: 1}]}",
               "jitter.ranks[0]: says nothing; give slow, jitter or both, for example slow: 1.2"),
        jitter("SlowOfZero", "{ranks: [{rank: 1, slow: 0}]}",
               "jitter.ranks[0].slow: 0 is out of range; a factor of the time is from 0.001 to "
               "1000, for example 1.2"),
        jitter("LinkToItself", "{links: [{link: [1, 1], slow: 2}]}",
               "jitter.links[0].link: a hop inside a rank crosses no link; name two ranks"),
        jitter("Probability", "{stragglers: {probability: 2, slow: 2}}",
               "jitter.stragglers.probability: 2 is too large; a probability is from 0 to 1, for "
               "example 0.01"),
    }),
    case_name<OverrideCase>);

// ---- Scenario files
// ------------------------------------------------------------------------------

std::string scenario_refusal(const std::string& yaml, const Overrides& overrides = {}) {
  try {
    (void)parse_scenario(yaml, "bad.yaml", parse_config(kGoodConfig, "model.yaml", overrides));
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ScenarioErrors, NamePlaceValueRuleAndFix) {
  EXPECT_EQ(scenario_refusal(""),
            "bad.yaml: the scenario is empty; give slow, outages or failures");
  EXPECT_EQ(scenario_refusal("failure: []"),
            "bad.yaml:1:1: failure: unknown key; did you mean failures?");
  EXPECT_EQ(scenario_refusal("failures: [{rank: 7, at: 1ms}]"),
            "bad.yaml:1:19: failures[0].rank: 7 is out of range; write a whole number from 0 to 1");
  EXPECT_EQ(scenario_refusal("failures: [{rank: 1, at: 1}]")
                .find("bad.yaml:1:26: failures[0].at: "
                      "1 has no unit"),
            0U);
  EXPECT_EQ(scenario_refusal("failures: [{rank: 1, at: 1ms}, {rank: 1, at: 2ms}]"),
            "bad.yaml:1:39: failures[1].rank: rank 1 fails twice; remove one");
  EXPECT_EQ(scenario_refusal("slow: [{factor: 2}]"),
            "bad.yaml:1:8: slow[0]: names 0 places; give exactly one of rank, link, shared");
  EXPECT_EQ(scenario_refusal("slow: [{rank: 0, factor: 0.5}]"),
            "bad.yaml:1:26: slow[0].factor: 0.5 is out of range; it takes from 1 to 1000 times as "
            "long, for example 2");
  EXPECT_EQ(scenario_refusal("slow: [{rank: 0, factor: 2, from: 2ms, until: 1ms}]"),
            "bad.yaml:1:47: slow[0].until: 1000000 ns is not after from, 2000000 ns; make it "
            "later");
  EXPECT_EQ(scenario_refusal("outages: [{rank: 0}]"),
            "bad.yaml:1:12: outages[0].rank: unknown key; did you mean link?");
  EXPECT_EQ(scenario_refusal("outages: [{shared: nic}]"),
            "bad.yaml:1:20: outages[0].shared: nic is a shared link, and the config has no "
            "topology; name ranks with link: [0, 1]");
  EXPECT_EQ(scenario_refusal(
                "outages: [{shared: node 0 nic 0 ou}]",
                {"links.message=1MiB", "topology={ranks_per_node: 1, nic: {bandwidth: 1GB/s}}"}),
            "bad.yaml:1:20: outages[0].shared: there is no shared link node 0 nic 0 ou; did you "
            "mean node 0 nic 0 out?");
}

TEST(ScenarioErrors, WhatIsRightIsAccepted) {
  EXPECT_EQ(scenario_refusal("units: {time: ms}\n"
                             "slow: [{rank: 0, factor: 2, from: 1, until: 2}]\n"
                             "outages: [{link: [0, 1], from: 3}]\n"
                             "failures: [{rank: 1, at: 4}]\n"),
            "accepted");
}

}  // namespace
}  // namespace counterflow::testing
