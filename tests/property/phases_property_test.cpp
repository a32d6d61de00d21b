#include <gtest/gtest.h>

#include <random>
#include <string>

#include "executor/virtual_streams.h"
#include "report/report.h"
#include "scheduler/bounds/lower_bound.h"
#include "scheduler/graph/evaluate.h"
#include "scheduler/passes/compile.h"
#include "scheduler/verify/verify.h"
#include "schedules/registry.h"
#include "simulator/simulate.h"
#include "tests/support/cases.h"
#include "tests/support/orders.h"
#include "tests/support/phases.h"
#include "tests/support/problems.h"
#include "tests/support/value_compute.h"

// What must hold for every family and any phases.
namespace counterflow {
namespace {

using testing::draw_phases;
using testing::RandomProblems;

// Random problems, each with random phases.
class PhasedProblems {
 public:
  explicit PhasedProblems(std::uint64_t seed) : problems_(seed), random_(seed) {}

  RandomProblems::Sample next() {
    auto sample = problems_.next();
    draw_phases(sample.problem, random_);
    return sample;
  }

 private:
  RandomProblems problems_;
  std::mt19937_64 random_;
};

std::string describe(const RandomProblems::Sample& sample) {
  std::string text = std::string(sample.family->name) +
                     " p=" + std::to_string(sample.problem.ranks()) +
                     " S=" + std::to_string(sample.problem.stages());
  for (const Phase& phase : sample.problem.phases) {
    text += " " + std::string(name(phase.kind)) + "=" + std::to_string(phase.count);
  }
  return text;
}

TEST(Phases, AreFaultlessAndSimulateAsEvaluated) {
  PhasedProblems problems(314);
  for (int index = 0; index < testing::cases(2000); ++index) {
    const auto sample = problems.next();
    const Problem& problem = sample.problem;
    SCOPED_TRACE(describe(sample));
    const Schedule schedule = generate(*sample.family, problem);
    ASSERT_EQ(testing::text(verify(problem, schedule)), "");
    const Program program = compile(problem, schedule);
    const ProgramVerdict verdict = verify(problem, program);
    ASSERT_EQ(testing::text(verdict.diagnostics), "");
    for (const auto& [semantics, completes] : verdict.semantics) {
      ASSERT_TRUE(completes) << name(semantics);
    }
    const Simulation simulation = simulate(program, problem.links, ExecutionModel::ideal());
    const Report report = measure(program, simulation.timeline);
    ASSERT_EQ(report.makespan, Evaluator(problem).makespan(schedule));
    ASSERT_LE(lower_bound(problem), report.makespan);
  }
}

// A rank is as busy as in all its phases one by one, and holds no more than in the fullest.
TEST(Phases, AddUpToWhatTheyAreAlone) {
  PhasedProblems problems(2718);
  for (int index = 0; index < testing::cases(500); ++index) {
    const auto [family, problem] = problems.next();
    SCOPED_TRACE(describe({family, problem}));
    const auto run = [family = family](const Problem& some) {
      const Program program = compile(some, generate(*family, some));
      return measure(program, simulate(program, some.links, ExecutionModel::ideal()).timeline);
    };
    const Report whole = run(problem);
    std::vector<RankReport> sums(whole.per_rank.size());
    for (const Phase& phase : problem.phases) {
      // As phases of their own, so that they are made the same way.
      Problem part = problem.only(phase);
      part.phases = {{phase.kind, 0, phase.count}};
      const Report alone = run(part);
      ASSERT_GE(whole.makespan, alone.makespan);
      for (std::size_t rank = 0; rank < sums.size(); ++rank) {
        const RankReport& its = alone.per_rank[rank];
        sums[rank].busy += its.busy;
        sums[rank].peak_activations = std::max(sums[rank].peak_activations, its.peak_activations);
        sums[rank].peak_memory = std::max(sums[rank].peak_memory, its.peak_memory);
      }
    }
    for (std::size_t rank = 0; rank < sums.size(); ++rank) {
      ASSERT_EQ(whole.per_rank[rank].busy, sums[rank].busy) << rank;
      ASSERT_EQ(whole.per_rank[rank].peak_activations, sums[rank].peak_activations) << rank;
      ASSERT_EQ(whole.per_rank[rank].peak_memory, sums[rank].peak_memory) << rank;
    }
  }
}

TEST(Phases, ComputeTheSameInEveryInterleaving) {
  exec::VirtualStreams backend;
  PhasedProblems problems(1618);
  for (int index = 0; index < testing::cases(150); ++index) {
    auto [family, problem] = problems.next();
    SCOPED_TRACE(describe({family, problem}));
    for (Bytes& size : problem.message) size = Bytes{16};
    for (StageMemory& memory : problem.memory) memory = {Bytes{32}, Bytes{16}};
    const Schedule schedule = generate(*family, problem);
    testing::ValueCompute compute;
    const exec::RunResult result =
        backend.run(compile(problem, schedule), compute,
                    {.steps = 2, .seed = static_cast<std::uint64_t>(index), .execution = {}});
    ASSERT_FALSE(result.failure) << result.failure->reason;
    testing::ExpectedValues expected(problem, schedule);
    for (const auto& order : schedule.ranks) {
      for (const Slot& slot : order) {
        for (const Op& op : {slot.first, slot.second}) {
          if (op.kind == OpKind::none) continue;
          ASSERT_EQ(compute.results().at(testing::ValueCompute::key(op)), expected.of(op))
              << to_string(op);
        }
      }
    }
  }
}

}  // namespace
}  // namespace counterflow
