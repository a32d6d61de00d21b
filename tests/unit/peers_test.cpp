#include "executor/processes/peers.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace counterflow {
namespace {

using namespace std::chrono_literals;

TEST(Peers, AreGoneAfterTooLongASilence) {
  exec::Peers peers(3, 0, 1ms);
  std::this_thread::sleep_for(2ms);
  EXPECT_NE(peers.gone(1), "");
  EXPECT_TRUE(peers.first_gone());
}

TEST(Peers, AreNotGoneWhereThisRankItselfDidNotRun) {
  exec::Peers peers(3, 0, 1ms);
  const auto now = exec::Peers::Clock::now();
  peers.look(now);
  std::this_thread::sleep_for(2ms);
  peers.look(now + 1h);
  EXPECT_EQ(peers.gone(1), "");
  EXPECT_FALSE(peers.first_gone());
  peers.lose(2, "has closed its connection");
  EXPECT_EQ(peers.first_gone(), 2);  // what is known is no silence
}

}  // namespace
}  // namespace counterflow
