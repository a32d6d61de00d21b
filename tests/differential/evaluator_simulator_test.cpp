#include <gtest/gtest.h>

#include <string>

#include "report/report.h"
#include "scheduler/bounds/lower_bound.h"
#include "scheduler/graph/dependencies.h"
#include "scheduler/graph/evaluate.h"
#include "scheduler/ir/schedule_file.h"
#include "scheduler/passes/compile.h"
#include "scheduler/verify/verify.h"
#include "schedules/registry.h"
#include "simulator/simulate.h"
#include "tests/support/cases.h"
#include "tests/support/random_problems.h"

namespace counterflow {
namespace {

using testing::cases;
using testing::RandomProblems;

std::string text(const Diagnostics& diagnostics) {
  std::string all;
  for (const Diagnostic& d : diagnostics) {
    all += d.rule + " rank " + std::to_string(d.rank.value_or(-1)) + " " + to_string(d.op) + " " +
           d.message + "\n";
  }
  return all;
}

std::string describe(const RandomProblems::Sample& sample, int index) {
  return "sample " + std::to_string(index) + ": " + std::string(sample.family->name) +
         " p=" + std::to_string(sample.problem.ranks()) +
         " S=" + std::to_string(sample.problem.stages()) +
         " m=" + std::to_string(sample.problem.microbatches);
}

// The begin of each compute in the simulated timeline, rank by rank.
std::vector<std::vector<Time>> compute_begins(const Program& program, const Timeline& timeline) {
  std::vector<std::vector<Time>> begins(program.ranks.size());
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) {
    const auto& instructions = program.ranks[rank].instructions;
    for (std::size_t i = 0; i < instructions.size(); ++i) {
      if (instructions[i].kind == InstructionKind::run) {
        begins[rank].push_back(timeline.ranks[rank].instructions[i].begin);
      }
    }
  }
  return begins;
}

// Two independent ways from an order to its times: the evaluator, and lowering plus simulation.
TEST(EvaluatorAndSimulator, AgreeOnEverySlotOfRandomProblems) {
  RandomProblems problems(20240);
  for (int index = 0; index < cases(4000); ++index) {
    const auto sample = problems.next();
    SCOPED_TRACE(describe(sample, index));
    const Schedule schedule = generate(*sample.family, sample.problem);
    const Evaluation evaluation = Evaluator(sample.problem).evaluate(schedule);
    ASSERT_TRUE(evaluation.complete);
    const Program program = compile(sample.problem, schedule);
    const Simulation simulation = simulate(program, sample.problem.links, ExecutionModel::ideal());
    ASSERT_EQ(text(simulation.diagnostics), "");
    ASSERT_EQ(compute_begins(program, simulation.timeline), evaluation.begins);
    ASSERT_EQ(measure(program, simulation.timeline).makespan, evaluation.makespan);
    ASSERT_EQ(Evaluator(sample.problem).makespan(schedule), evaluation.makespan);
    ASSERT_LE(lower_bound(sample.problem), evaluation.makespan);
  }
}

TEST(Lowering, IsFaultlessUnderEverySemanticsOnRandomProblems) {
  RandomProblems problems(77);
  for (int index = 0; index < cases(3000); ++index) {
    const auto sample = problems.next();
    SCOPED_TRACE(describe(sample, index));
    const Schedule schedule = generate(*sample.family, sample.problem);
    ASSERT_EQ(text(verify(sample.problem, schedule)), "");
    const Program program = compile(sample.problem, schedule);
    const ProgramVerdict verdict = verify(sample.problem, program);
    ASSERT_EQ(text(verdict.diagnostics), "");
    for (const auto& [semantics, completes] : verdict.semantics) {
      ASSERT_TRUE(completes) << name(semantics);
    }
    // The text form with communication stalls whole ranks, and still completes.
    const Program back = import(sample.problem, parse_schedule(to_csv(program), "program.csv"));
    const ProgramVerdict stalled = verify(sample.problem, back);
    ASSERT_EQ(text(stalled.diagnostics), "");
    for (const auto& [semantics, completes] : stalled.semantics) {
      ASSERT_TRUE(completes) << name(semantics);
    }
    // Where nothing queues, it measures the same.
    const auto measured = [&](const Program& run) {
      return measure(run, simulate(run, sample.problem.links, ExecutionModel::ideal()).timeline);
    };
    const Report direct = measured(program);
    const Report imported = measured(back);
    for (std::size_t rank = 0; rank < direct.per_rank.size(); ++rank) {
      ASSERT_EQ(imported.per_rank[rank].busy, direct.per_rank[rank].busy);
      ASSERT_EQ(imported.per_rank[rank].peak_activations, direct.per_rank[rank].peak_activations);
      if (!sample.problem.links.has_bandwidth()) {
        ASSERT_EQ(imported.per_rank[rank].comm_exposed, direct.per_rank[rank].comm_exposed);
      }
    }
  }
}

// One stream a rank is the strictest case: whatever blocks, blocks everything behind it.
TEST(Lowering, CompletesOnASingleStreamARank) {
  RandomProblems problems(78);
  for (int index = 0; index < cases(3000); ++index) {
    const auto sample = problems.next();
    SCOPED_TRACE(describe(sample, index));
    Program program = compile(sample.problem, generate(*sample.family, sample.problem));
    for (RankProgram& rank : program.ranks) {
      for (Instruction& instruction : rank.instructions) instruction.stream = 0;
    }
    for (const auto& [semantics, completes] : verify(sample.problem, program).semantics) {
      ASSERT_TRUE(completes) << name(semantics);
    }
    ExecutionModel strict = ExecutionModel::nccl();
    strict.launch_order = LaunchOrder::serial;
    ASSERT_EQ(text(simulate(program, sample.problem.links, strict).diagnostics), "");
  }
}

TEST(Simulator, CompletesUnderEveryExecutionModelOnRandomProblems) {
  RandomProblems problems(4711);
  for (int index = 0; index < cases(1500); ++index) {
    const auto sample = problems.next();
    SCOPED_TRACE(describe(sample, index));
    const Program program = compile(sample.problem, generate(*sample.family, sample.problem));
    const Time ideal = Evaluator(sample.problem).makespan(generate(*sample.family, sample.problem));
    for (const Semantics semantics : kAllSemantics) {
      for (const LaunchOrder order :
           {LaunchOrder::independent, LaunchOrder::chained, LaunchOrder::serial}) {
        for (const int queues : {0, 1, 2}) {
          const ExecutionModel model{.name = "random",
                                     .semantics = semantics,
                                     .independent_transfers = false,
                                     .serial_communicators = index % 2 == 0,
                                     .launch_order = order,
                                     .hardware_queues = queues};
          const Simulation run = simulate(program, sample.problem.links, model);
          ASSERT_EQ(text(run.diagnostics), "")
              << name(semantics) << " " << name(order) << " queues " << queues;
          // Without bandwidth nothing can overtake, so more rules never make it faster.
          if (!sample.problem.links.has_bandwidth()) {
            ASSERT_GE(measure(program, run.timeline).makespan, ideal);
          }
        }
      }
    }
  }
}

TEST(CriticalPath, AgreesWithTheEvaluatorAndHasNoSlack) {
  RandomProblems problems(5);
  for (int index = 0; index < cases(1000); ++index) {
    const auto sample = problems.next();
    if (sample.problem.links.has_bandwidth()) continue;
    SCOPED_TRACE(describe(sample, index));
    const Schedule schedule = generate(*sample.family, sample.problem);
    const Dependencies dependencies(sample.problem, schedule);
    const CriticalPath path = critical_path(sample.problem, schedule, dependencies);
    const Evaluation evaluation = Evaluator(sample.problem).evaluate(schedule);
    for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
      for (std::uint32_t k = 0; k < schedule.ranks[rank].size(); ++k) {
        const Vertex v = dependencies.vertex(static_cast<Rank>(rank), k);
        ASSERT_EQ(path.begin[v], evaluation.begins[rank][k]);
        ASSERT_GE(path.slack[v], Time{0});
      }
    }
    for (const Vertex v : path.path) ASSERT_EQ(path.slack[v], Time{0});
  }
}

}  // namespace
}  // namespace counterflow
