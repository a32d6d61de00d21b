#include <gtest/gtest.h>

#include <string>

#include "scheduler/bounds/lower_bound.h"
#include "scheduler/graph/evaluate.h"
#include "scheduler/ir/schedule_file.h"
#include "schedules/registry.h"
#include "tests/support/cases.h"
#include "tests/support/random_problems.h"

// How a makespan must change when the problem does, whatever the problem.
namespace counterflow {
namespace {

using testing::RandomProblems;

// The same problem with other costs and links; factors and bandwidth, which round, are dropped.
Problem with_times(const Problem& problem, std::int64_t scale, bool latency) {
  Problem changed = problem;
  std::vector<StageCost> costs = problem.costs.stages();
  for (StageCost& cost : costs) {
    cost.forward *= scale;
    cost.backward_input *= scale;
    cost.backward_weight *= scale;
  }
  PairCosts pairs;
  for (Stage a = 0; a < problem.stages(); ++a) {
    for (Stage b = 0; b < problem.stages(); ++b) {
      const Time pair = problem.costs.pairs().find(a, b);
      if (pair >= Time{0}) pairs.set(a, b, scale * pair);
    }
  }
  changed.costs = Costs(std::move(costs), {}, std::move(pairs));
  std::vector<Time> table;
  for (Rank from = 0; from < problem.ranks(); ++from) {
    for (Rank to = 0; to < problem.ranks(); ++to) {
      table.push_back(latency ? scale * problem.links.latency(from, to) : Time{0});
    }
  }
  changed.links = Links(problem.ranks(), std::move(table), 0);
  return changed;
}

Time makespan(const Problem& problem, const Schedule& schedule) {
  return Evaluator(problem).makespan(schedule);
}

TEST(Metamorphic, ScalingAllTimesScalesMakespanAndBound) {
  RandomProblems problems(11);
  for (int index = 0; index < testing::cases(1500); ++index) {
    const auto sample = problems.next();
    SCOPED_TRACE(std::string(sample.family->name) + " sample " + std::to_string(index));
    const Schedule schedule = generate(*sample.family, sample.problem);
    const Problem once = with_times(sample.problem, 1, true);
    const Time base = makespan(once, schedule);
    for (const std::int64_t k : {2, 3, 1000}) {
      const Problem scaled = with_times(sample.problem, k, true);
      ASSERT_EQ(makespan(scaled, schedule), k * base);
      ASSERT_EQ(lower_bound(scaled), k * lower_bound(once));
    }
  }
}

TEST(Metamorphic, NoLatencyIsNeverSlower) {
  RandomProblems problems(12);
  for (int index = 0; index < testing::cases(1500); ++index) {
    const auto sample = problems.next();
    SCOPED_TRACE(std::string(sample.family->name) + " sample " + std::to_string(index));
    const Schedule schedule = generate(*sample.family, sample.problem);
    const Problem near = with_times(sample.problem, 1, false);
    const Problem far = with_times(sample.problem, 1, true);
    ASSERT_LE(makespan(near, schedule), makespan(far, schedule));
    ASSERT_LE(lower_bound(near), lower_bound(far));
  }
}

TEST(Metamorphic, TheTextFormOfASchedulePreservesIt) {
  RandomProblems problems(13);
  for (int index = 0; index < testing::cases(1500); ++index) {
    const auto sample = problems.next();
    SCOPED_TRACE(std::string(sample.family->name) + " sample " + std::to_string(index));
    const Schedule schedule = generate(*sample.family, sample.problem);
    const ScheduleFile file = parse_schedule(to_csv(schedule), "schedule.csv");
    ASSERT_FALSE(file.has_communication);
    ASSERT_EQ(file.compute().ranks, schedule.ranks);
  }
}

}  // namespace
}  // namespace counterflow
