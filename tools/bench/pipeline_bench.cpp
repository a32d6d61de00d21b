// How fast the compiler's own work is: schedules generated, evaluated, lowered, verified,
// simulated. Rates are per compute op or per instruction; compare.py sets them beside PyTorch's in
// the same run.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "scheduler/graph/evaluate.h"
#include "scheduler/passes/compile.h"
#include "scheduler/verify/verify.h"
#include "schedules/registry.h"
#include "simulator/simulate.h"
#include "tools/bench/even_problem.h"

namespace counterflow {
namespace {

void set_ops(benchmark::State& state, std::size_t ops) {
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(ops));
}

// A limit for the evaluator: one dependent pass over as many entries.
void BM_ArraySweep(benchmark::State& state) {
  std::vector<std::int64_t> costs(static_cast<std::size_t>(state.range(0)), 1000);
  std::vector<std::int64_t> ends(costs.size());
  for (auto _ : state) {
    std::int64_t clock = 0;
    for (std::size_t i = 0; i < costs.size(); ++i) {
      clock = std::max(clock, i >= 512 ? ends[i - 512] : 0) + costs[i];
      ends[i] = clock;
    }
    benchmark::DoNotOptimize(clock);
  }
  set_ops(state, costs.size());
}
BENCHMARK(BM_ArraySweep)->Arg(65536);

void BM_Evaluate(benchmark::State& state, const char* name, int chunks) {
  const Family& family = *find_family(name);
  const Problem problem = even_problem(family, static_cast<int>(state.range(0)),
                                       static_cast<int>(state.range(1)), chunks);
  const Schedule schedule = generate(family, problem);
  Evaluator evaluator(problem);
  for (auto _ : state) benchmark::DoNotOptimize(evaluator.makespan(schedule));
  set_ops(state, schedule.size());
}
BENCHMARK_CAPTURE(BM_Evaluate, 1f1b, "1f1b", 1)->Args({64, 512});
BENCHMARK_CAPTURE(BM_Evaluate, zb_h1, "zb-h1", 1)->Args({64, 512});
BENCHMARK_CAPTURE(BM_Evaluate, interleaved_zb, "interleaved-zb", 2)->Args({64, 256});
BENCHMARK_CAPTURE(BM_Evaluate, dualpipe, "dualpipe", 1)->Args({64, 512});

// The whole way: generate, lower, verify, simulate. Reports the program's bytes an instruction.
void BM_Compile(benchmark::State& state) {
  const Family& family = *find_family("interleaved-zb");
  const Problem problem =
      even_problem(family, static_cast<int>(state.range(0)), static_cast<int>(state.range(1)), 2);
  std::size_t instructions = 0;
  std::size_t bytes = 0;
  for (auto _ : state) {
    const Schedule schedule = generate(family, problem);
    const Diagnostics faults = verify(problem, schedule);
    const Program program = compile(problem, schedule);
    const ProgramVerdict verdict = verify(problem, program);
    const Simulation simulation = simulate(program, problem.links, ExecutionModel::ideal());
    if (!faults.empty() || !verdict.diagnostics.empty() || !simulation.diagnostics.empty()) {
      state.SkipWithError("the schedule is faulty");
      return;
    }
    instructions = program.size();
    bytes = memory_use(program);
  }
  set_ops(state, instructions);
  state.counters["instructions"] = static_cast<double>(instructions);
  state.counters["bytes_per_instruction"] =
      static_cast<double>(bytes) / static_cast<double>(instructions);
}
BENCHMARK(BM_Compile)
    ->Args({64, 256})
    ->Args({128, 512})
    ->Args({128, 1024})
    ->Args({256, 2048})
    ->Unit(benchmark::kMillisecond);

// All rules of a lowered program; at most 150 ns an instruction is the aim.
void BM_VerifyProgram(benchmark::State& state) {
  const Family& family = *find_family("interleaved-zb");
  const Problem problem =
      even_problem(family, static_cast<int>(state.range(0)), static_cast<int>(state.range(1)), 2);
  const Program program = compile(problem, generate(family, problem));
  for (auto _ : state) {
    benchmark::DoNotOptimize(verify(problem, program).diagnostics.size());
  }
  set_ops(state, program.size());
  state.counters["ns_per_instruction"] = benchmark::Counter(
      static_cast<double>(program.size()) * 1e-9,
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
  state.counters["instructions"] = static_cast<double>(program.size());
}
BENCHMARK(BM_VerifyProgram)
    ->Args({64, 256})
    ->Args({128, 896})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

void BM_Part(benchmark::State& state, const char* part) {
  const Family& family = *find_family("interleaved-zb");
  const Problem problem = even_problem(family, 64, 256, 2);
  const Schedule schedule = generate(family, problem);
  const Program program = compile(problem, schedule);
  const std::string which = part;
  for (auto _ : state) {
    if (which == "generate") benchmark::DoNotOptimize(generate(family, problem).size());
    if (which == "verify_schedule") benchmark::DoNotOptimize(verify(problem, schedule).size());
    if (which == "lower") benchmark::DoNotOptimize(compile(problem, schedule).size());
    if (which == "verify_program") {
      benchmark::DoNotOptimize(verify(problem, program).diagnostics.size());
    }
    if (which == "simulate") {
      benchmark::DoNotOptimize(
          simulate(program, problem.links, ExecutionModel::ideal()).timeline.ranks.size());
    }
  }
  set_ops(state, program.size());
}
BENCHMARK_CAPTURE(BM_Part, generate, "generate")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Part, verify_schedule, "verify_schedule")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Part, lower, "lower")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Part, verify_program, "verify_program")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Part, simulate, "simulate")->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace counterflow
