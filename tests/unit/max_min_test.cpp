#include "simulator/max_min.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "simulator/flow_network.h"
#include "tests/support/random_problems.h"

namespace counterflow::sim {
namespace {

using Flows = std::vector<std::vector<std::uint32_t>>;
using Rates = std::vector<double>;

// ---- Rates, by hand
// ------------------------------------------------------------------------------

TEST(MaxMin, OneLinkIsSharedEqually) {
  EXPECT_EQ(max_min_rates({12}, Flows{{0}}), (Rates{12}));
  EXPECT_EQ(max_min_rates({12}, Flows{{0}, {0}, {0}}), (Rates{4, 4, 4}));
}

TEST(MaxMin, WhatABottleneckLeavesGoesToTheOthers) {
  // The long flow gets half of link 0; of link 1 the short one takes all that is left.
  EXPECT_EQ(max_min_rates({4, 10}, Flows{{0}, {0, 1}, {1}}), (Rates{2, 2, 8}));
}

TEST(MaxMin, ThreeLevels) {
  // Link 0: 3 among three flows: 1 each. Link 1: 5 less that 1, between two: 2 each. Link 2: 9 less
  // 1 and 2 is 6 for the last.
  EXPECT_EQ(max_min_rates({3, 5, 9}, Flows{{0}, {0, 1}, {0, 2}, {1}, {1, 2}, {2}}),
            (Rates{1, 1, 1, 2, 2, 6}));
}

TEST(MaxMin, ChainOfTwoLinksIsTheBooksExample) {
  // One flow over both links of 1, one over each: all get a half.
  EXPECT_EQ(max_min_rates({1, 1}, Flows{{0, 1}, {0}, {1}}), (Rates{0.5, 0.5, 0.5}));
}

TEST(MaxMin, NoLinkIsNoLimitAndNoCapacityIsNoRate) {
  const double unlimited = MaxMinSolver::kUnlimited;
  EXPECT_EQ(max_min_rates({5}, Flows{{}, {0}}), (Rates{unlimited, 5}));
  EXPECT_EQ(max_min_rates({0, 5}, Flows{{0, 1}, {1}}), (Rates{0, 5}));
  EXPECT_EQ(max_min_rates({unlimited, 5}, Flows{{0}, {0, 1}, {0}}),
            (Rates{unlimited, 5, unlimited}));
}

// By its definition: every flow has a link that is full and where no other flow is faster.
TEST(MaxMin, EveryFlowHasABottleneckOnRandomNetworks) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 500; ++round) {
    std::vector<double> capacities;
    for (auto n = testing::draw(random, 1, 8); n > 0; --n) {
      capacities.push_back(static_cast<double>(testing::draw(random, 1, 100)));
    }
    Flows flows(static_cast<std::size_t>(testing::draw(random, 1, 12)));
    for (auto& flow : flows) {
      for (std::uint32_t link = 0; link < capacities.size(); ++link) {
        if (testing::draw(random, 0, 2) == 0) flow.push_back(link);
      }
      if (flow.empty()) flow.push_back(0);
    }
    const Rates rates = max_min_rates(capacities, flows);
    Rates load(capacities.size());
    Rates fastest(capacities.size());
    for (std::size_t f = 0; f < flows.size(); ++f) {
      for (const std::uint32_t link : flows[f]) {
        load[link] += rates[f];
        fastest[link] = std::max(fastest[link], rates[f]);
      }
    }
    for (std::size_t link = 0; link < load.size(); ++link) {
      ASSERT_LE(load[link], capacities[link] * (1 + 1e-12));
    }
    for (std::size_t f = 0; f < flows.size(); ++f) {
      const bool limited = std::ranges::any_of(flows[f], [&](std::uint32_t link) {
        return load[link] >= capacities[link] * (1 - 1e-12) &&
               rates[f] >= fastest[link] * (1 - 1e-12);
      });
      ASSERT_TRUE(limited) << "flow " << f << " of round " << round;
    }
  }
}

// ---- Flows over time, by hand
// --------------------------------------------------------------------

// Ends of all flows, in the order of their tags.
std::vector<std::int64_t> ends(FlowNetwork& network, std::size_t flows) {
  std::vector<std::int64_t> result(flows, -1);
  for (std::int64_t at = network.next_end(); at != FlowNetwork::kNever; at = network.next_end()) {
    for (const std::uint32_t tag : network.finish_next()) result[tag] = at;
  }
  return result;
}

TEST(FlowNetwork, TheBottleneckMovesWhenAFlowEnds) {
  // Link 0 of 2, link 1 of 3 bytes a ns. Flow 0 on link 0, flow 1 on both, flow 2 on link 1: rates
  // 1, 1, 2. At 10 flow 0 has had its 10 bytes. Now flow 1 is held back by link 1 instead: 1.5 and
  // 1.5. Flow 2 has 30 of 50 left and ends at 30; by then flow 1 has had 10 + 30 of 55, and the
  // last 15 go at 2 a ns, for link 0 holds it again: 37.5, rounded.
  FlowNetwork network({2, 3});
  network.begin(0, std::vector<FlowNetwork::LinkId>{0}, 10, 0);
  network.begin(0, std::vector<FlowNetwork::LinkId>{0, 1}, 55, 1);
  network.begin(0, std::vector<FlowNetwork::LinkId>{1}, 50, 2);
  EXPECT_EQ(ends(network, 3), (std::vector<std::int64_t>{10, 38, 30}));
}

TEST(FlowNetwork, ALateFlowSlowsTheFirst) {
  // Alone until 4, then half each: 8 bytes at 0.5, to 20. The second has had 8 and is alone: 12
  // more, to 32.
  FlowNetwork network({1});
  network.begin(0, std::vector<FlowNetwork::LinkId>{0}, 12, 0);
  EXPECT_EQ(network.next_end(), 12);
  network.begin(4, std::vector<FlowNetwork::LinkId>{0}, 20, 1);
  EXPECT_EQ(ends(network, 2), (std::vector<std::int64_t>{20, 32}));
}

TEST(FlowNetwork, FlowsThatShareNoLinkDoNotMeet) {
  FlowNetwork network({1, 1});
  network.begin(0, std::vector<FlowNetwork::LinkId>{0}, 7, 0);
  network.begin(0, std::vector<FlowNetwork::LinkId>{1}, 9, 1);
  EXPECT_EQ(ends(network, 2), (std::vector<std::int64_t>{7, 9}));
}

TEST(FlowNetwork, CapacitiesMayChangeAndVanish) {
  // 10 bytes at 1, nothing for 90 ns, the last 10 at 2.
  FlowNetwork network({1});
  network.begin(0, std::vector<FlowNetwork::LinkId>{0}, 20, 0);
  network.set_capacity(10, 0, 0);
  EXPECT_EQ(network.next_end(), FlowNetwork::kNever);
  network.set_capacity(100, 0, 2);
  EXPECT_EQ(ends(network, 1), (std::vector<std::int64_t>{105}));
}

TEST(FlowNetwork, ACancelledFlowLeavesItsShare) {
  FlowNetwork network({2});
  network.begin(0, std::vector<FlowNetwork::LinkId>{0}, 20, 0);
  const auto other = network.begin(0, std::vector<FlowNetwork::LinkId>{0}, 1000, 1);
  EXPECT_EQ(network.next_end(), 20);
  network.cancel(10, other);
  EXPECT_EQ(ends(network, 2), (std::vector<std::int64_t>{15, -1}));
}

TEST(FlowNetwork, IsAsNewAfterAReset) {
  FlowNetwork network({2, 3});
  const auto once = [&] {
    network.begin(0, std::vector<FlowNetwork::LinkId>{0, 1}, 11, 0);
    network.begin(3, std::vector<FlowNetwork::LinkId>{1}, 17, 1);
    return ends(network, 2);
  };
  const auto first = once();
  network.set_capacity(1000, 0, 1);
  network.reset();
  EXPECT_EQ(once(), first);
}

}  // namespace
}  // namespace counterflow::sim
