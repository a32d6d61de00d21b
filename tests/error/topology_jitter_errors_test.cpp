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
        topology("UnknownKey", "{nod: 1}",
                 "topology.nod: unknown key; did you mean nodes or node?"),
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
        topology("NameOfAnUplink",
                 "{ranks_per_node: 1, spine: {bandwidth: 1GB/s}, links: [{name: node 0 up, "
                 "bandwidth: 1GB/s, pairs: []}]}",
                 "topology.links[0].name: node 0 up is a link that the nodes have already; write "
                 "another name, for example ib0"),
        topology("NameOfANic",
                 "{ranks_per_node: 2, nic: {bandwidth: 1GB/s}, links: [{name: node 0 nic 1 in, "
                 "bandwidth: 1GB/s, pairs: []}]}",
                 "topology.links[0].name: node 0 nic 1 in is a link that the nodes have already; "
                 "write another name, for example ib0"),
        topology("NameOfAPort",
                 "{ranks_per_node: 2, node: {bandwidth: 1GB/s}, links: [{name: rank 1 out, "
                 "bandwidth: 1GB/s, pairs: []}]}",
                 "topology.links[0].name: rank 1 out is a link that the nodes have already; write "
                 "another name, for example ib0"),
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
               "jitter.compute: -0.1 is negative; sigma is a share of the cost from 0 to 1, for "
               "example 0.05"),
        jitter("SigmaInPercent", "{forward: 5%}",
               "jitter.forward: 5% is not a number; sigma is a share of the cost from 0 to 1, for "
               "example 0.05"),
        jitter("SigmaNotANumber", "{compute: .nan}",
               "jitter.compute: .nan is not a number; sigma is a share of the cost from 0 to 1, "
               "for example 0.05"),
        jitter("SigmaOfUniform", "{transfer: {distribution: uniform, sigma: 0.578}}",
               "jitter.transfer.sigma: 0.578 is too large; sigma of uniform is from 0 to 0.577, "
               "since factors reach from 1 - 1.732 sigma, for example 0.05"),
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
               "jitter.ranks[0].slow: 0 is too small; a factor of the time is from 0.001 to "
               "1000, for example 1.2"),
        jitter("SlowBeyondADouble", "{ranks: [{rank: 1, slow: 1e400}]}",
               "jitter.ranks[0].slow: 1e400 is too large; a factor of the time is from 0.001 to "
               "1000, for example 1.2"),
        jitter("SlowOfALink", "{links: [{link: [0, 1], slow: 1e9}]}",
               "jitter.links[0].slow: 1e9 is too large; a factor of the time is from 0.001 to "
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
            "bad.yaml:1:26: slow[0].factor: 0.5 is too small; what is slow takes from 1 to 1000 "
            "times as long, for example 2");
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
  EXPECT_EQ(
      scenario_refusal("outages: [{shared: ib0}]", {"links.message=1MiB",
                                                    "topology={ranks_per_node: 2, nic: {bandwidth: "
                                                    "1GB/s}}"}),
      "bad.yaml:1:20: outages[0].shared: there is no shared link ib0; there are node 0 nic 0 out, "
      "node 0 nic 0 in, node 0 nic 1 out, node 0 nic 1 in");
}

TEST(ScenarioErrors, ATopologyOfLatenciesHasNoLinks) {
  EXPECT_EQ(scenario_refusal(
                "outages: [{shared: ib0}]",
                {"links.message=1MiB", "topology={ranks_per_node: 2, node: {latency: 1us}}"}),
            "bad.yaml:1:20: outages[0].shared: there is no shared link ib0; the topology limits no "
            "rate; name ranks with link: [0, 1]");
}

TEST(ScenarioErrors, ListsAtMostTwelveLinks) {
  const std::string message = scenario_refusal(
      "outages: [{shared: ib0}]", {"pipeline.ranks=8", "links.message=1MiB",
                                   "topology={ranks_per_node: 8, node: {bandwidth: 1GB/s}}"});
  EXPECT_EQ(message,
            "bad.yaml:1:20: outages[0].shared: there is no shared link ib0; there are rank 0 out, "
            "rank 0 in, rank 1 out, rank 1 in, rank 2 out, rank 2 in, rank 3 out, rank 3 in, rank "
            "4 out, rank 4 in, rank 5 out, rank 5 in and 4 more");
}

TEST(ScenarioErrors, AMissingFileIsAScenario) {
  const std::string path = ::testing::TempDir() + "no_such_scenario.yaml";
  try {
    (void)read_scenario(path, parse_config(kGoodConfig, "model.yaml"));
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_EQ(error.what(), path + ": no such file; give the path of a YAML scenario");
  }
}

// What uses every sigma up to the limit is accepted.
TEST(JitterLimits, AreThemselvesAccepted) {
  EXPECT_EQ(refusal(kGoodConfig, {"jitter={compute: {distribution: uniform, sigma: 0.577}, "
                                  "transfer: {distribution: normal, sigma: 1}, ranks: [{rank: 0, "
                                  "slow: 1000}], links: [{link: [0, 1], slow: 0.001}]}"}),
            "accepted");
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
