#include "report/consecutive_steps.h"

#include <gtest/gtest.h>

#include <string>

#include "scheduler/passes/compile.h"
#include "scheduler/passes/in_steps.h"
#include "schedules/registry.h"
#include "simulator/simulate.h"
#include "tests/support/optimizers.h"
#include "tests/support/problems.h"

// What one step more costs where nobody waits for all others, by hand.
namespace counterflow {
namespace {

using testing::units;

constexpr int kRanks = 4;
constexpr int kMicrobatches = 8;
constexpr int kSteps = 6;

ConsecutiveSteps measured(const std::string& name, const Problem& problem) {
  const Program one = compile(problem, generate(*find_family(name), problem));
  const Program all = in_steps(problem, one, kSteps);
  const Simulation simulation = simulate(all, problem.links, ExecutionModel::ideal());
  EXPECT_TRUE(simulation.diagnostics.empty());
  return measure_steps(all, simulation.timeline, kSteps);
}

Problem unit_problem(const std::string& name, double latency = 0) {
  const Family& family = *find_family(name);
  return testing::family_problem(family, kRanks, family.default_chunks, kMicrobatches,
                                 {.latency = latency});
}

// F = I = W = 1, B = 2, p = 4, m = 8. Rank 0 runs the first F of a step and its last B, which end
// (m + p - 1)(F + B) = 33 apart, and it takes up the next step in that instant. Its other ranks are
// done earlier, but their first F waits for rank 0's: nothing overlaps.
TEST(ConsecutiveSteps, Of1F1BCostARankZeroFromEndToEnd) {
  const ConsecutiveSteps steps = measured("1f1b", unit_problem("1f1b"));
  EXPECT_EQ(steps.step, units(33));
  EXPECT_EQ(steps.makespan, units(kSteps * 33));
}

// Without a bubble of its own a rank works all the time: m (F + I + W) = 24. The step before and
// the one after overlap by the (p - 1) F = 3 that the last rank begins and ends later.
TEST(ConsecutiveSteps, OfZeroBubbleOverlapTheNextWarmUp) {
  const ConsecutiveSteps steps = measured("zb-h2", unit_problem("zb-h2"));
  EXPECT_EQ(steps.step, units(24));
  EXPECT_EQ(steps.makespan, units(kSteps * 24 + 3));
}

// A latency of 1, a step of 2, of which nothing depends on the norm but where it waits: the norm
// goes round a ring, 2 (p - 1) hops = 6. Rank 0 ends last, so what follows its last B is the norm
// and then the step, or the longer of the two.
TEST(ConsecutiveSteps, StepBesideTheNormOrAfterIt) {
  const testing::OptimizerShape waits{.bucket = Bytes{0}, .tied = Bytes{0}, .step = units(2)};
  testing::OptimizerShape validated = waits;
  validated.validation = Validation::after;
  const auto step = [](const testing::OptimizerShape& shape) {
    Problem problem = testing::with_optimizer(unit_problem("1f1b", 1), shape);
    problem.optimizer->validate.assign(problem.optimizer->validate.size(), Time{0});
    return measured("1f1b", problem).step;
  };
  testing::OptimizerShape none = waits;
  none.global_norm = false;
  const Time alone = step(none) - units(2);  // of the passes
  EXPECT_EQ(step(waits), alone + units(6 + 2));
  EXPECT_EQ(step(validated), alone + units(6));
}

// The norm is known when the last rank is done, 3 after the first: all ranks begin again then, so
// that the overlap above is lost; the step itself is hidden behind the norm's 3.
TEST(ConsecutiveSteps, TheNormTakesTheOverlapOfZeroBubbleAway) {
  const testing::OptimizerShape waits{.bucket = Bytes{0}, .tied = Bytes{0}, .step = units(2)};
  testing::OptimizerShape validated = waits;
  validated.validation = Validation::after;
  testing::OptimizerShape none = waits;
  none.global_norm = false;
  const auto step = [](const testing::OptimizerShape& shape) {
    Problem problem = testing::with_optimizer(unit_problem("zb-h2"), shape);
    problem.optimizer->validate.assign(problem.optimizer->validate.size(), Time{0});
    return measured("zb-h2", problem).step;
  };
  EXPECT_EQ(step(none), units(24 + 2));
  EXPECT_EQ(step(waits), units(24 + 3 + 2));
  EXPECT_EQ(step(validated), units(24 + 3));
}

// What a rank holds across the boundary: its share of static memory, activations, and what STEP
// keeps; never more than in a step alone, for VALIDATE comes before the first F.
TEST(ConsecutiveSteps, HoldNoMoreThanOneStep) {
  Problem problem = testing::with_optimizer(
      unit_problem("zb-h2"), {.gradients = Bytes{4000}, .validation = Validation::after});
  for (StageMemory& memory : problem.memory) memory = {Bytes{1000}, Bytes{1000}};
  const ConsecutiveSteps steps = measured("zb-h2", problem);
  const Program one = compile(problem, generate(*find_family("zb-h2"), problem));
  const Simulation alone = simulate(one, problem.links, ExecutionModel::ideal());
  for (std::size_t r = 0; r < steps.peak_memory.size(); ++r) {
    Bytes peak;
    for (const MemorySample& sample : alone.timeline.ranks[r].memory) {
      peak = std::max(peak, sample.held);
    }
    EXPECT_EQ(steps.peak_memory[r], peak) << "rank " << r;
  }
}

}  // namespace
}  // namespace counterflow
