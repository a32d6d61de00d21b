// Topology, jitter and scenarios as a config says them.
#include <gtest/gtest.h>

#include <string>
#include <variant>

#include "scheduler/problem/config.h"
#include "scheduler/problem/scenario.h"

namespace counterflow {
namespace {

Config with(const Overrides& overrides) {
  return parse_config(
      "pipeline: {ranks: 4, microbatches: 4, schedule: 1f1b}\n"
      "stages: {forward: 1ms, backward_input: 2ms, backward_weight: 3ms}\n"
      "links: {message: 1MiB, latency: 1us}\n",
      "model.yaml", overrides);
}

TEST(ConfigTopology, ReadsNodesNicsRailsAndNamedLinks) {
  const Config config = with(
      {"topology={ranks_per_node: 2, nics_per_node: 1, rails: true, node: {bandwidth: 400GB/s, "
       "latency: 2us}, nic: {bandwidth: 400Gb/s, latency: 5us}, spine: {latency: 3us}, links: "
       "[{name: cable, bandwidth: 1GB/s, pairs: [[0, 2]]}]}"});
  const Topology& topology = *config.links.topology();
  EXPECT_EQ(topology.links().size(), 13U);  // a port each way of 4 ranks and 2 NICs, and the cable
  EXPECT_EQ(topology.links().front().name, "rank 0 out");
  EXPECT_EQ(topology.links().front().bandwidth, 400e9);
  EXPECT_EQ(topology.bandwidth(1, 2), 50e9);
  EXPECT_EQ(topology.bandwidth(0, 2), 1e9);
  // One rail, for there is one NIC a node: nothing crosses the spine.
  EXPECT_EQ(config.links.latency(0, 2), Time{6'000});
  EXPECT_EQ(config.links.latency(0, 1), Time{3'000});
  EXPECT_FALSE(config.links.only_latency());
  EXPECT_EQ(config.links.passage(0, 2, Bytes{1'000}), Time{1'000});
}

TEST(ConfigTopology, ReadsTheNodeOfEachRank) {
  const Config config = with({"topology={nodes: [0, 1, 0, 1], nic: {latency: 5us}}"});
  EXPECT_EQ(config.links.topology()->latency(0, 2), Time{0});
  EXPECT_EQ(config.links.topology()->latency(0, 1), Time{5'000});
}

TEST(ConfigTopology, IsAbsentUnlessGiven) {
  EXPECT_EQ(with({}).links.topology(), nullptr);
  EXPECT_TRUE(with({}).links.only_latency());
}

TEST(ConfigJitter, ReadsAllItsKeys) {
  EXPECT_FALSE(with({}).jitter.has_value());
  const Config config =
      with({"jitter={seed: 7, compute: 0.05, forward: {distribution: lognormal, sigma: 0.1}, "
            "transfer: {distribution: exponential, sigma: 0.5}, ranks: [{rank: 3, slow: 1.2, "
            "jitter: 0.2}], links: [{link: [0, 1], slow: 2}], stragglers: {probability: 0.25, "
            "slow: 4}}"});
  const Jitter& jitter = *config.jitter;
  EXPECT_EQ(jitter.seed, 7U);
  EXPECT_EQ(jitter.compute, (Spread{Distribution::normal, 0.05}));
  ASSERT_EQ(jitter.kinds.size(), 1U);
  EXPECT_EQ(jitter.kinds[0].first, OpKind::forward);
  EXPECT_EQ(jitter.kinds[0].second, (Spread{Distribution::lognormal, 0.1}));
  EXPECT_EQ(jitter.transfer, (Spread{Distribution::exponential, 0.5}));
  EXPECT_EQ(jitter.ranks.at(0).rank, 3);
  EXPECT_EQ(jitter.ranks.at(0).slow, 1.2);
  EXPECT_EQ(jitter.ranks.at(0).spread, (Spread{Distribution::normal, 0.2}));
  EXPECT_EQ(jitter.links.at(0).to, 1);
  EXPECT_EQ(jitter.links.at(0).slow, 2);
  EXPECT_EQ(jitter.stragglers.probability, 0.25);
  EXPECT_EQ(jitter.stragglers.slow, 4);
  EXPECT_EQ(largest_factor(jitter), (1 + 0.5 * 37.5) * 2 * 4);
}

TEST(ScenarioFile, ReadsAllItsKeys) {
  const Scenario scenario = parse_scenario(
      "units: {time: ms}\n"
      "slow: [{rank: 3, factor: 2, from: 1, until: 2}, {shared: rank 0 out, factor: 4}]\n"
      "outages: [{link: [1, 2], from: 3}]\n"
      "failures: [{rank: 2, at: 4}]\n",
      "bad.yaml", with({"topology={ranks_per_node: 2, node: {bandwidth: 1GB/s}}"}));
  ASSERT_EQ(scenario.slowdowns.size(), 3U);
  EXPECT_EQ(std::get<Scenario::OneRank>(scenario.slowdowns[0].what).rank, 3);
  EXPECT_EQ(scenario.slowdowns[0].factor, 2.0);
  EXPECT_EQ(scenario.slowdowns[0].from, Time{1'000'000});
  EXPECT_EQ(scenario.slowdowns[0].until, Time{2'000'000});
  EXPECT_EQ(std::get<Scenario::OneShared>(scenario.slowdowns[1].what).link, 0U);
  EXPECT_EQ(scenario.slowdowns[1].until, std::nullopt);
  EXPECT_EQ(std::get<Scenario::OneLink>(scenario.slowdowns[2].what).to, 2);
  EXPECT_EQ(scenario.slowdowns[2].factor, std::nullopt);
  ASSERT_EQ(scenario.failures.size(), 1U);
  EXPECT_EQ(scenario.failures[0].at, Time{4'000'000});
}

}  // namespace
}  // namespace counterflow
