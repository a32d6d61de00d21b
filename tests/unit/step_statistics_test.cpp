#include "report/step_statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "reference/numbers.h"
#include "report/report.h"
#include "scheduler/passes/compile.h"
#include "schedules/registry.h"
#include "tests/support/optimizers.h"
#include "tests/support/problems.h"

namespace counterflow {
namespace {

using namespace std::chrono_literals;

constexpr int kOps = 8;  // of a kind on a rank

// Ranks that each run F of their stage, then B; no messages. Stage s costs s + 1 times as much.
Program compute_only(int ranks) {
  Program program;
  program.stages = ranks;
  program.microbatches = kOps;
  for (int r = 0; r < ranks; ++r) {
    RankProgram& rank = program.ranks.emplace_back();
    rank.streams = {{StreamRole::compute}};
    for (const OpKind kind : {OpKind::forward, OpKind::backward}) {
      const auto stage = static_cast<std::uint16_t>(r);
      program.kernels.push_back({.kind = kind, .stage = stage, .duration = 1ms * (r + 1)});
      for (Microbatch mb = 0; mb < kOps; ++mb) {
        rank.instructions.push_back(
            {.kernel = static_cast<std::uint32_t>(program.kernels.size() - 1),
             .op = {kind, 0, stage, mb}});
      }
    }
  }
  return program;
}

// Every op one after the other, each its predicted time times `factor(rank, op)`.
Timeline timeline(const Program& program,
                  const std::function<double(int rank, const Op& op)>& factor) {
  Timeline result;
  for (std::size_t r = 0; r < program.ranks.size(); ++r) {
    RankTimeline& rank = result.ranks.emplace_back();
    Time at{0};
    for (const Instruction& i : program.ranks[r].instructions) {
      const auto whole = static_cast<double>(program.kernels[i.kernel].duration.count());
      const double length = whole * factor(static_cast<int>(r), i.op);
      const Time end = at + Time{static_cast<std::int64_t>(length)};
      rank.instructions.push_back({at, end});
      at = end;
    }
  }
  return result;
}

Timeline predicted(const Program& program) {
  return timeline(program, [](int, const Op&) { return 1.0; });
}

using Factor = std::function<double(int step, int rank, const Op& op)>;

RunStatistics statistics(const Program& program, int steps, const Factor& factor) {
  StepStatistics all(program, predicted(program));
  for (int step = 0; step < steps; ++step) {
    const Timeline one =
        timeline(program, [&](int rank, const Op& op) { return factor(step, rank, op); });
    all.add(one, measure(program, one).makespan);
  }
  return all.result();
}

// What a machine does to every op: some per cent, and now and then up to four times as long.
class Noise {
 public:
  explicit Noise(std::uint64_t seed) : seed_(seed) {}
  double operator()() {
    const double usual = 1.05 + 0.05 * reference::uniform(seed_, 0, next_);
    const double rare = reference::uniform(seed_, 1, next_);
    const double outlier = 2.5 + 1.5 * reference::uniform(seed_, 2, next_++);
    return rare > 0.9 ? usual * outlier : usual;
  }

 private:
  std::uint64_t seed_;
  std::uint64_t next_ = 0;
};

TEST(StepStatistics, FiguresOfEachRankAndKind) {
  const Program program = compute_only(2);
  // F of rank 1 takes 2 ms, in every other step 2.4; one of its ops always a tenth more.
  const RunStatistics found = statistics(program, 10, [](int step, int rank, const Op& op) {
    if (rank != 1 || op.kind != OpKind::forward) return 1.0;
    return (step % 2 == 0 ? 1.0 : 1.2) * (op.microbatch == 3 ? 1.1 : 1.0);
  });
  ASSERT_EQ(found.ranks.size(), 4U);
  const auto& f1 = found.ranks[1];
  EXPECT_EQ(f1.rank, 1);
  EXPECT_EQ(f1.kind, "F");
  EXPECT_EQ(f1.count, kOps);
  EXPECT_EQ(f1.predicted, 2ms);
  EXPECT_NEAR(static_cast<double>(f1.mean.count()), 2.2e6 * (1 + 0.1 / kOps), 2);
  EXPECT_NEAR(static_cast<double>(f1.median.count()), 2.2e6, 2);
  EXPECT_EQ(f1.spread, 0ns);  // most are alike
  EXPECT_NEAR(static_cast<double>(f1.step_spread.count()), 1.4826 * 0.2e6, 2);
  EXPECT_EQ(found.ranks[0].mean, 1ms);
  EXPECT_EQ(found.ranks[0].step_spread, 0ns);
}

TEST(StepStatistics, ASlowRankIsNamedWithTheStepFromWhichOn) {
  const Program program = compute_only(4);
  Noise noise(1);
  const RunStatistics found = statistics(program, 20, [&](int step, int rank, const Op& op) {
    const bool slow = rank == 2 && op.kind == OpKind::backward && step >= 7;
    return noise() * (slow ? 1.3 : 1);
  });
  ASSERT_EQ(found.stragglers.size(), 1U) << summary(found);
  const Straggler& one = found.stragglers[0];
  EXPECT_EQ(one.rank, 2);
  EXPECT_EQ(one.kind, "B");
  EXPECT_FALSE(one.op);
  EXPECT_NEAR(one.factor, 1.3, 0.05);
  EXPECT_EQ(one.since, 7);
  EXPECT_TRUE(one.has_peers);
  // 8 ops of 3 ms, some per cent of noise, 30 % too long.
  EXPECT_GT(one.cost, 7ms);
  EXPECT_LT(one.cost, 10ms);
  EXPECT_NE(summary(found).find("rank 2: B takes 1."), std::string::npos) << summary(found);
  EXPECT_NE(summary(found).find("what it takes on other ranks, from step 7 on"), std::string::npos);
}

TEST(StepStatistics, ASlowRankOfTwoAndOneAlone) {
  const auto slow_forward = [](int rank) {
    return [rank](int, int at, const Op& op) {
      return at == rank && op.kind == OpKind::forward ? 1.5 : 1.0;
    };
  };
  const RunStatistics two = statistics(compute_only(2), 6, slow_forward(1));
  ASSERT_EQ(two.stragglers.size(), 1U);
  EXPECT_EQ(two.stragglers[0].rank, 1);
  const RunStatistics alone = statistics(compute_only(1), 6, slow_forward(0));
  ASSERT_EQ(alone.stragglers.size(), 1U);
  EXPECT_FALSE(alone.stragglers[0].has_peers);
  EXPECT_NE(summary(alone).find("F takes 1.50 times what is predicted, from step 0 on"),
            std::string::npos)
      << summary(alone);
}

TEST(StepStatistics, ASlowOpIsNamedBesideItsKind) {
  const Program program = compute_only(3);
  Noise noise(2);
  const RunStatistics found = statistics(program, 12, [&](int, int rank, const Op& op) {
    const bool slow = rank == 1 && op.kind == OpKind::forward && op.microbatch == 5;
    return noise() * (slow ? 2 : 1);
  });
  ASSERT_EQ(found.stragglers.size(), 1U) << summary(found);
  ASSERT_TRUE(found.stragglers[0].op);
  EXPECT_EQ(found.stragglers[0].op->microbatch, 5);
  EXPECT_NEAR(found.stragglers[0].factor, 2, 0.3);
  EXPECT_EQ(found.stragglers[0].since, 0);
  EXPECT_NE(summary(found).find("rank 1: 1F5 takes "), std::string::npos);
}

TEST(StepStatistics, NoiseIsNoStraggler) {
  int alarms = 0;
  for (std::uint64_t seed = 100; seed < 140; ++seed) {
    Noise noise(seed);
    const int ranks = 2 + static_cast<int>(seed % 4);
    const auto steps = static_cast<int>(3 + seed % 20);
    const RunStatistics found =
        statistics(compute_only(ranks), steps, [&](int, int, const Op&) { return noise(); });
    alarms += static_cast<int>(found.stragglers.size());
    alarms += found.drift && found.drift->is_sure ? 1 : 0;
  }
  EXPECT_LE(alarms, 1);
}

TEST(StepStatistics, AFewSlowStepsAreNoStraggler) {
  const RunStatistics found = statistics(compute_only(4), 30, [](int step, int rank, const Op& op) {
    return step % 3 == 0 && rank == 1 && op.kind == OpKind::forward ? 3.0 : 1.0;
  });
  EXPECT_TRUE(found.stragglers.empty()) << summary(found);
}

TEST(StepStatistics, WhatAllTakeLongerIsNoStragglerButDrift) {
  const Program program = compute_only(4);
  Noise noise(3);
  const RunStatistics found = statistics(program, 24, [&](int step, int, const Op& op) {
    return noise() * (op.kind == OpKind::backward ? 1 + 0.05 * step : 1);
  });
  EXPECT_TRUE(found.stragglers.empty()) << summary(found);
  ASSERT_TRUE(found.drift);
  EXPECT_TRUE(found.drift->is_sure);
  EXPECT_GT(found.drift->change, 0.08);
  EXPECT_EQ(found.drift->kind, "B");
  EXPECT_GT(found.drift->of_kind, 1ms);
  const std::string text = summary(found);
  EXPECT_NE(text.find("steps get longer: "), std::string::npos) << text;
  EXPECT_NE(text.find("; B takes "), std::string::npos) << text;
}

TEST(StepStatistics, AJumpIsDriftToo) {
  const RunStatistics found =
      statistics(compute_only(2), 12, [](int step, int, const Op&) { return step < 6 ? 1.2 : 1; });
  ASSERT_TRUE(found.drift);
  EXPECT_TRUE(found.drift->is_sure);
  EXPECT_NEAR(found.drift->change, 1 / 1.2 - 1, 1e-6);
  EXPECT_NE(summary(found).find("steps get shorter"), std::string::npos);
}

TEST(StepStatistics, FewStepsSayNothing) {
  const RunStatistics found = statistics(
      compute_only(3), 2, [](int, int rank, const Op&) { return rank == 1 ? 2.0 : 1.0; });
  EXPECT_TRUE(found.stragglers.empty());
  EXPECT_FALSE(found.drift);
  EXPECT_EQ(found.ranks.size(), 6U);
}

TEST(StepStatistics, ManyStepsNeedNoMoreMemoryAndSayTheSame) {
  const RunStatistics found =
      statistics(compute_only(2), 2000, [](int step, int rank, const Op& op) {
        const bool slow = rank == 0 && op.kind == OpKind::forward && step >= 1990;
        return slow ? 4.0 : 1.0;
      });
  ASSERT_EQ(found.stragglers.size(), 1U);
  EXPECT_EQ(found.stragglers[0].since, 1990);
  EXPECT_NEAR(found.stragglers[0].factor, 4, 1e-6);
  EXPECT_EQ(found.stragglers[0].cost, 24ms);
  EXPECT_EQ(found.ranks[0].median, 1ms);
}

TEST(EvenSample, KeepsAllThenEveryOther) {
  EvenSample<int> sample(8);
  for (int i = 0; i < 8; ++i) sample.add(i);
  EXPECT_EQ(sample.values(), (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
  for (int i = 8; i < 40; ++i) sample.add(i);
  EXPECT_EQ(sample.values(), (std::vector<int>{0, 8, 16, 24, 32}));
  EXPECT_EQ(sample.index(3), 24U);
}

// The first instruction of a rank that is wanted.
std::size_t first(const Program& program, std::size_t rank, auto wanted) {
  const auto& instructions = program.ranks[rank].instructions;
  return static_cast<std::size_t>(std::ranges::find_if(instructions, wanted) -
                                  instructions.begin());
}

TEST(OwnTimes, BeginWhenAllEndsAreThere) {
  const Problem problem = testing::with_optimizer(
      testing::uniform_problem(PlacementKind::loop, 2, 1, 1, Time{9}, Time{9}, Time{9}));
  const Program program = compile(problem, generate(*find_family("1f1b"), problem));
  const auto is = [](OpKind kind) { return [kind](const auto& i) { return i.op.kind == kind; }; };
  const std::size_t send = first(program, 0, is(OpKind::send_forward));
  const std::size_t receive = first(program, 1, is(OpKind::receive_forward));
  const auto is_collective = [](const auto& i) { return i.kind == InstructionKind::collective; };
  const std::size_t tied[] = {first(program, 0, is_collective), first(program, 1, is_collective)};
  Timeline measured;
  for (const RankProgram& rank : program.ranks) {
    measured.ranks.push_back({std::vector<Interval>(rank.instructions.size()), {}});
  }
  auto& [at_0, memory_0] = measured.ranks[0];
  auto& [at_1, memory_1] = measured.ranks[1];
  at_0[send] = {10ns, 30ns};
  at_1[receive] = {0ns, 31ns};
  at_0[tied[0]] = {40ns, 60ns};
  at_1[tied[1]] = {54ns, 61ns};
  at_0[0] = {3ns, 8ns};
  auto own = OwnTimes(program).of(measured);
  EXPECT_EQ(own[0][send], 20ns);
  EXPECT_EQ(own[1][receive], 21ns);
  EXPECT_EQ(own[0][tied[0]], 6ns);
  EXPECT_EQ(own[1][tied[1]], 7ns);
  EXPECT_EQ(own[0][0], 5ns);
  // What was buffered leaves before its receive is posted.
  at_0[send] = {10ns, 14ns};
  at_1[receive] = {20ns, 29ns};
  own = OwnTimes(program).of(measured);
  EXPECT_EQ(own[0][send], 4ns);
  EXPECT_EQ(own[1][receive], 9ns);
}

}  // namespace
}  // namespace counterflow
