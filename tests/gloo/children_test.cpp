#include "executor/gloo/children.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstddef>
#include <vector>

// Processes that this one starts, and how long they may take to end.
namespace counterflow::exec {
namespace {

using namespace std::chrono_literals;
using Bytes = std::vector<std::byte>;

constexpr std::byte kWord{7};

TEST(Children, SendBackWhatTheyHaveToSay) {
  Children children(3, [](int number) { return Bytes(100'000, std::byte(number)); });
  const auto outcomes = children.wait([](const Children::Outcome&) { return 1h; });
  ASSERT_EQ(outcomes.size(), 3U);
  for (std::size_t n = 0; n < 3; ++n) {
    EXPECT_EQ(outcomes[n].bytes, Bytes(100'000, std::byte(n)));
    EXPECT_EQ(outcomes[n].how, "exited with status 0");
    EXPECT_FALSE(outcomes[n].ended_by_us);
  }
}

// Who is stopped cannot end by itself, and would be waited for until the end of the longest grace.
TEST(Children, EndsOneThatIsStoppedWhenTheFirstGraceIsOver) {
  Children children(3, [](int number) {
    if (number == 1) raise(SIGSTOP);
    return number == 0 ? Bytes{kWord} : Bytes{};
  });
  const auto outcomes = children.wait([](const Children::Outcome& outcome) {
    return outcome.bytes == Bytes{kWord} ? std::chrono::nanoseconds(0) : 24h;
  });
  EXPECT_EQ(outcomes[0].bytes, Bytes{kWord});
  EXPECT_TRUE(outcomes[1].ended_by_us);
  EXPECT_EQ(outcomes[1].how, "was ended by signal 9");
  EXPECT_TRUE(outcomes[1].bytes.empty());
}

TEST(Children, WhatOneThatDiesHasSentIsNoAnswer) {
  Children children(1, [](int) -> Bytes {
    raise(SIGKILL);
    return {kWord};
  });
  const auto outcomes = children.wait([](const Children::Outcome&) { return 0h; });
  EXPECT_TRUE(outcomes[0].bytes.empty());
  EXPECT_FALSE(outcomes[0].ended_by_us);
  EXPECT_EQ(outcomes[0].how, "was ended by signal 9");
}

}  // namespace
}  // namespace counterflow::exec
