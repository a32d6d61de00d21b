#include "simulator/monte_carlo.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "report/report.h"
#include "scheduler/graph/evaluate.h"
#include "scheduler/passes/compile.h"
#include "simulator/engine.h"
#include "simulator/simulate.h"
#include "tests/support/problems.h"
#include "tests/support/random_problems.h"

namespace counterflow {
namespace {

using testing::describe;
using testing::family_problem;
using testing::uniform_problem;

// ---- Draws
// ---------------------------------------------------------------------------------------

TEST(Noise, NormalQuantilesAreTheTables) {
  // Abramowitz and Stegun, table 26.5.
  EXPECT_NEAR(sim::normal_quantile(0.5), 0, 1e-12);
  EXPECT_NEAR(sim::normal_quantile(0.975), 1.959963985, 1e-8);
  EXPECT_NEAR(sim::normal_quantile(0.01), -2.326347874, 1e-8);
  EXPECT_NEAR(sim::normal_quantile(1e-9), -5.997807015, 1e-7);
}

struct Moments {
  double mean = 0;
  double deviation = 0;
  double least = 0;
};

Moments moments(const Spread& spread) {
  constexpr int kDraws = 200'000;
  const sim::Sampler sampler(spread);
  double sum = 0;
  double squares = 0;
  double least = 1e9;
  for (std::uint64_t i = 0; i < kDraws; ++i) {
    const double value = sampler.factor(sim::unit(sim::mix(i)));
    sum += value;
    squares += value * value;
    least = std::min(least, value);
    EXPECT_LE(value, largest_factor(spread));
  }
  const double mean = sum / kDraws;
  return {mean, std::sqrt(squares / kDraws - mean * mean), least};
}

TEST(Noise, FactorsHaveTheMeanAndDeviationAskedFor) {
  for (const double sigma : {0.02, 0.2}) {
    for (const auto kind : {Distribution::normal, Distribution::lognormal, Distribution::uniform}) {
      const Moments found = moments({kind, sigma});
      EXPECT_NEAR(found.mean, 1, 0.01 * sigma);
      EXPECT_NEAR(found.deviation, sigma, 0.01 * sigma);
      EXPECT_GE(found.least, 0);
    }
    const Moments delay = moments({Distribution::exponential, sigma});
    EXPECT_NEAR(delay.mean, 1 + sigma, 0.01 * sigma);
    EXPECT_NEAR(delay.deviation, sigma, 0.02 * sigma);
    EXPECT_GE(delay.least, 1);
  }
  EXPECT_EQ(sim::Sampler({Distribution::normal, 0}).factor(0.99), 1);
}

// The mean of max(0, 1 + sigma z) is Phi(1 / sigma) + sigma phi(1 / sigma).
TEST(Noise, NormalCutAtZeroHasTheMeanOfTheReport) {
  EXPECT_NEAR(moments({Distribution::normal, 0.5}).mean, 1.0042, 0.002);
  EXPECT_NEAR(moments({Distribution::normal, 1}).mean, 1.0833, 0.003);
}

TEST(Noise, TheLargestUniformSpreadReachesZeroAndKeepsItsMean) {
  const double sigma = 0.577;
  const auto found = moments({Distribution::uniform, sigma});
  EXPECT_NEAR(found.mean, 1, 0.005);
  EXPECT_NEAR(found.deviation, sigma, 0.005);
  EXPECT_GE(found.least, 0);
}

// ---- Trials
// --------------------------------------------------------------------------------------

struct Case {
  Problem problem;
  Program program;
};

Case zb_h1(int p, int m) {
  const Family& family = *find_family("zb-h1");
  Case made;
  made.problem = family_problem(family, p, 1, m, {3, 4, 2, 0.5});
  made.program = compile(made.problem, generate(family, made.problem));
  return made;
}

Jitter noisy(double sigma) {
  Jitter jitter;
  jitter.compute = {Distribution::lognormal, sigma};
  jitter.transfer = {Distribution::exponential, sigma};
  return jitter;
}

Time plain_makespan(const Case& one, const ExecutionModel& model) {
  return measure(one.program, simulate(one.program, one.problem.links, model).timeline).makespan;
}

TEST(Trials, WithoutJitterAreThePlainSimulation) {
  const Case one = zb_h1(4, 8);
  for (const auto& model : {ExecutionModel::ideal(), ExecutionModel::nccl()}) {
    TrialRunner runner(one.program, one.problem.links, model, Jitter{}, 7);
    for (std::uint64_t trial = 0; trial < 3; ++trial) {
      EXPECT_EQ(runner.makespan(trial), plain_makespan(one, model));
    }
  }
}

TEST(Trials, DependOnSeedAndNumberAlone) {
  const Case one = zb_h1(4, 8);
  const ExecutionModel model = ExecutionModel::ideal();
  TrialRunner runner(one.program, one.problem.links, model, noisy(0.1), 7);
  TrialRunner again(one.program, one.problem.links, model, noisy(0.1), 7);
  TrialRunner other(one.program, one.problem.links, model, noisy(0.1), 8);
  const std::vector<Time> all = runner.makespans(0, 40, 1);
  EXPECT_EQ(again.makespan(39), all[39]);
  EXPECT_EQ(again.makespan(3), all[3]);
  EXPECT_NE(other.makespan(3), all[3]);
  EXPECT_GT(std::set<Time>(all.begin(), all.end()).size(), 35U);
}

TEST(Trials, AreTheSameForAnyNumberOfThreads) {
  const Case one = zb_h1(4, 8);
  const ExecutionModel model = ExecutionModel::nccl();
  const auto makespans = [&](int threads) {
    TrialRunner runner(one.program, one.problem.links, model, noisy(0.2), 1);
    return runner.makespans(0, 100, threads);
  };
  EXPECT_EQ(makespans(2), makespans(1));
  EXPECT_EQ(makespans(5), makespans(1));
  const auto report = [&](int threads) {
    Report result;
    result.trials = run_trials(one.program, one.problem.links, model, noisy(0.2),
                               {.trials = 100, .seed = 3, .threads = threads});
    return to_json(result);
  };
  EXPECT_EQ(report(1), report(2));
}

TEST(Trials, SlowRanksAndLinksSlowTheirOwn) {
  // One rank after the other, nothing overlaps: 100, 50 and 100 us.
  Problem problem =
      uniform_problem(PlacementKind::loop, 2, 1, 1, Time{100'000}, Time{0}, Time{0}, Time{50'000});
  problem.forward_only = true;
  const Program program = compile(problem, generate(*find_family("forward-only"), problem));
  const ExecutionModel model = ExecutionModel::ideal();
  Jitter jitter;
  jitter.ranks.push_back({1, 3.0, std::nullopt});
  jitter.links.push_back({0, 1, 2.0, std::nullopt});
  EXPECT_EQ(TrialRunner(program, problem.links, model, jitter, 0).makespan(0), Time{500'000});
  jitter = {};
  jitter.stragglers = {1.0, 2.0};
  EXPECT_EQ(TrialRunner(program, problem.links, model, jitter, 0).makespan(0), Time{450'000});
  // All of the makespan is one chain, so each part is felt by its share of it.
  const Trials trials = run_trials(program, problem.links, model, Jitter{}, {.trials = 4});
  ASSERT_EQ(trials.ranks.size(), 2U);
  EXPECT_NEAR(trials.ranks[0].sensitivity, 0.4, 0.01);
  EXPECT_NEAR(trials.ranks[1].sensitivity, 0.4, 0.01);
  ASSERT_EQ(trials.links.size(), 1U);
  EXPECT_NEAR(trials.links[0].sensitivity, 0.2, 0.01);
  EXPECT_EQ(trials.median, Time{250'000});
}

TEST(Trials, QuantilesAreOrderedAndOfTheNearestRank) {
  std::vector<Time> values;
  for (int i = 100; i > 0; --i) values.emplace_back(i);
  EXPECT_EQ(quantile(values, 0.05), Time{5});
  EXPECT_EQ(quantile(values, 0.5), Time{50});
  EXPECT_EQ(quantile(values, 0.951), Time{96});
  EXPECT_EQ(quantile(values, 0), Time{1});
  EXPECT_EQ(quantile(values, 1), Time{100});
  EXPECT_EQ(quantile({Time{7}}, 0.95), Time{7});
  const Case one = zb_h1(3, 6);
  const Trials trials = run_trials(one.program, one.problem.links, ExecutionModel::ideal(),
                                   noisy(0.1), {.trials = 200, .sensitivity = false});
  EXPECT_LT(trials.least, trials.p5);
  EXPECT_LT(trials.p5, trials.median);
  EXPECT_LT(trials.median, trials.p95);
  EXPECT_LT(trials.p95, trials.most);
  EXPECT_TRUE(trials.ranks.empty());
}

TEST(Trials, OrdersOfTheSameWorkMeetTheSameConditions) {
  // Two orders, compute on one rank only: whatever is drawn, both take the same time.
  const Problem problem =
      uniform_problem(PlacementKind::loop, 1, 1, 6, Time{1000}, Time{1000}, Time{1000});
  const auto value = makespan_under(problem, ExecutionModel::ideal(), noisy(0.3), {},
                                    {.quantile = 0.5, .trials = 9, .seed = 5});
  const Schedule one = generate(*find_family("gpipe"), problem);
  const Schedule other = generate(*find_family("1f1b"), problem);
  ASSERT_NE(one.ranks, other.ranks);
  EXPECT_EQ(value(one), value(other));
}

TEST(Trials, OfAnOrderThatDoesNotCompleteAreTheLongest) {
  const Case one = zb_h1(2, 2);
  Schedule order = generate(*find_family("zb-h1"), one.problem);
  std::reverse(order.ranks[0].begin(), order.ranks[0].end());
  EXPECT_EQ(makespan_under(one.problem, ExecutionModel::ideal(), {}, {}, {})(order), Time::max());
}

// ---- Delays change times and nothing else
// --------------------------------------------------------

// 100 runs with delays of one to ten times on random ops of random ranks: every run comes to its
// end, and on every rank the computes run in the order they were given.
TEST(Delays, NeverGetStuckAndNeverReorder) {
  const Family& family = *find_family("interleaved-1f1b");
  const Problem problem = family_problem(family, 4, 2, 8, {3, 4, 2, 0.5});
  const Program program = compile(problem, generate(family, problem));
  Jitter jitter;
  jitter.compute = {Distribution::exponential, 1};
  jitter.transfer = {Distribution::exponential, 1};
  jitter.stragglers = {0.25, 10};
  for (const auto& model :
       {ExecutionModel::ideal(), ExecutionModel::nccl(), ExecutionModel::gloo()}) {
    const sim::Wiring wiring(program, problem.links, model);
    sim::Engine engine(wiring);
    std::vector<std::int64_t> durations;
    std::vector<double> stretch;
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
      sim::Noise(wiring, jitter, seed).draw(0, {}, durations, stretch);
      engine.run({durations, stretch});
      ASSERT_TRUE(engine.completed()) << model.name << " seed " << seed;
      const auto timelines = engine.timelines();
      for (std::size_t rank = 0; rank < timelines.size(); ++rank) {
        Time reached{0};
        for (std::size_t i = 0; i < timelines[rank].instructions.size(); ++i) {
          if (program.ranks[rank].instructions[i].kind != InstructionKind::run) continue;
          ASSERT_GE(timelines[rank].instructions[i].begin, reached);
          reached = timelines[rank].instructions[i].end;
        }
      }
    }
  }
}

// An engine that has run before is as good as new, over every kind of link.
TEST(Engines, MayRunAgain) {
  testing::RandomProblems problems(5);
  for (int index = 0; index < 200; ++index) {
    const auto sample = problems.next();
    const Program program = compile(sample.problem, generate(*sample.family, sample.problem));
    Machine machine;
    for (int rank = 0; rank < sample.problem.ranks(); ++rank) machine.node_of.push_back(rank / 2);
    machine.nics_per_node = 1;
    machine.nic.bandwidth = 5e8;
    const Links shared = Links(Time{2}).with(Topology(machine, {}));
    for (const Links& links : {sample.problem.links, shared}) {
      for (const auto& model : {ExecutionModel::ideal(), ExecutionModel::nccl()}) {
        const sim::Wiring wiring(program, links, model);
        sim::Engine engine(wiring);
        engine.run();
        ASSERT_TRUE(engine.completed());
        const auto first = engine.times();
        engine.run();
        ASSERT_EQ(engine.times(), first);
      }
    }
  }
}

// A wider path is never slower for a message that has it to itself.
TEST(SharedLinks, MoreBandwidthIsNeverSlowerForASingleFlow) {
  Problem problem = uniform_problem(PlacementKind::loop, 2, 1, 1, Time{10}, Time{0}, Time{0});
  problem.forward_only = true;
  problem.message.assign(2, Bytes{12'345});
  const Program program = compile(problem, generate(*find_family("forward-only"), problem));
  Time before = Time::max();
  for (double bandwidth = 1e8; bandwidth < 1e13; bandwidth *= 1.37) {
    Machine machine;
    machine.node_of = {0, 1};
    machine.nic.bandwidth = bandwidth;
    const Links links = Links(Time{3}).with(Topology(machine, {}));
    const Time end =
        simulate(program, links, ExecutionModel::ideal()).timeline.ranks[1].instructions.back().end;
    EXPECT_LE(end, before);
    before = end;
  }
  EXPECT_LE(before, Time{10 + 3 + 2 + 10});
}

}  // namespace
}  // namespace counterflow
