#include "tests/fuzz/run_program.h"

#include <array>
#include <string>

#include "report/draw.h"
#include "report/report.h"
#include "scheduler/error.h"
#include "scheduler/ir/schedule_file.h"
#include "scheduler/passes/compile.h"
#include "scheduler/verify/verify.h"
#include "simulator/simulate.h"
#include "tests/fuzz/targets.h"

namespace counterflow::fuzz {
namespace {

ExecutionModel blocking(Semantics semantics) {
  ExecutionModel model = ExecutionModel::ideal();
  model.independent_transfers = false;
  model.semantics = semantics;
  return model;
}

void draw(const Program& program, const Timeline& timeline) {
  const Report report = measure(program, timeline);
  const DrawContext run{program, timeline, report, {}};
  (void)to_json(report);
  (void)timeline_json(run);
  (void)trace_json(run);
  (void)trace_perfetto(run);
}

}  // namespace

void run_program(const Problem& problem, const Program& program) {
  const ProgramVerdict verdict = verify(problem, program, {});
  for (const auto& [semantics, completes] : verdict.semantics) {
    const Simulation simulation = simulate(program, problem.links, blocking(semantics));
    if (verdict.diagnostics.empty()) {
      require(completes == simulation.diagnostics.empty(),
              "verification and simulation agree under " + std::string(name(semantics)));
    }
  }
  for (const ExecutionModel& model :
       {ExecutionModel::ideal(), ExecutionModel::nccl(), ExecutionModel::gloo()}) {
    draw(program, simulate(program, problem.links, model).timeline);
  }
}

void run_order(const Problem& problem, const Schedule& schedule) {
  const Program program = compile(problem, schedule);
  const ProgramVerdict verdict = verify(problem, program);
  require(verdict.diagnostics.empty(), "what is lowered has no faults");
  for (const auto& each : verdict.semantics) require(each.completes, "it never deadlocks");
  run_program(problem, program);
  const std::string text = to_csv(program);
  require(to_csv(parse_schedule(text, "written.csv")) == text, "program.csv reads back");
}

Problem plain_problem(const Placement& placement, int microbatches) {
  Problem problem;
  problem.placement = placement;
  const auto stages = static_cast<std::size_t>(placement.stages());
  problem.graph = StageGraph::chain(placement.stages());
  problem.microbatches = microbatches;
  problem.costs = Costs(std::vector<StageCost>(stages, {Time{3}, Time{2}, Time{1}}));
  problem.memory.assign(stages, StageMemory{Bytes{2}, Bytes{1}});
  problem.frozen.assign(stages, 0);
  problem.links = Links(Time{1});
  problem.message.assign(stages, Bytes{1});
  return problem;
}

}  // namespace counterflow::fuzz
