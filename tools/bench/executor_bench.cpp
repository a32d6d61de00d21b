#include <benchmark/benchmark.h>

#include "executor/virtual_streams.h"
#include "scheduler/passes/compile.h"
#include "schedules/registry.h"
#include "tools/bench/even_problem.h"

namespace counterflow {
namespace {

struct Nothing final : exec::Compute {
  void run(const exec::ComputeCall&) override {}
};

// A program on virtual streams whose runs do nothing and whose messages are empty: what is left is
// the interpreter. The arguments: ranks, microbatches, steps a run; one step shows what the first
// costs, with all that is looked up before it. At most 20 ns an instruction is the aim.
void BM_Interpreter(benchmark::State& state, std::uint64_t seed) {
  const Family& family = *find_family("interleaved-zb");
  const Problem problem =
      even_problem(family, static_cast<int>(state.range(0)), static_cast<int>(state.range(1)), 2);
  const Program program = compile(problem, generate(family, problem));
  const auto steps = static_cast<int>(state.range(2));
  exec::VirtualStreams backend;
  Nothing compute;
  for (auto _ : state) {
    benchmark::DoNotOptimize(backend.run(
        program, compute, {.steps = steps, .seed = seed, .measured = [](const Timeline& step) {
                             benchmark::DoNotOptimize(step.ranks.data());
                           }}));
  }
  const double instructions = static_cast<double>(program.size()) * steps;
  state.counters["ns_per_instruction"] =
      benchmark::Counter(instructions * 1e-9, benchmark::Counter::kIsIterationInvariantRate |
                                                  benchmark::Counter::kInvert);
  state.counters["instructions"] = static_cast<double>(program.size());
}
BENCHMARK_CAPTURE(BM_Interpreter, in_turn, 0)
    ->Args({8, 64, 1})
    ->Args({8, 64, 128})
    ->Args({64, 256, 1})
    ->Args({64, 256, 128})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Interpreter, at_random, 1)
    ->Args({8, 64, 128})
    ->Args({64, 256, 32})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace counterflow
