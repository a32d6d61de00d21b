// What a trial under jitter costs beside a plain simulation of the same program, in one run, and
// what messages that share links cost beside messages that do not.
#include <benchmark/benchmark.h>

#include <chrono>

#include "scheduler/passes/compile.h"
#include "schedules/registry.h"
#include "simulator/monte_carlo.h"
#include "simulator/simulate.h"

namespace counterflow {
namespace {

Problem chain(int ranks, int microbatches) {
  Problem problem;
  problem.placement = Placement(PlacementKind::loop, ranks, 1);
  problem.graph = StageGraph::chain(ranks);
  problem.microbatches = microbatches;
  const auto count = static_cast<std::size_t>(ranks);
  problem.costs =
      Costs(std::vector<StageCost>(count, {Time{1'000'000}, Time{1'100'000}, Time{900'000}}));
  problem.memory.assign(count, {Bytes{1}, Bytes{1}});
  problem.frozen.assign(count, 0);
  problem.message.assign(count, Bytes{16'000'000});
  problem.links = Links(Time{5'000});
  return problem;
}

Links shared(const Problem& problem) {
  Machine machine;
  for (Rank rank = 0; rank < problem.ranks(); ++rank) machine.node_of.push_back(rank / 8);
  machine.nics_per_node = 4;
  machine.node.bandwidth = 400e9;
  machine.nic.bandwidth = 50e9;
  machine.spine.bandwidth = 100e9;
  return problem.links.with(Topology(machine, {}));
}

double seconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

// Plain simulations and trials turn by turn; `trial_to_plain` is the ratio of their times.
void BM_Trial(benchmark::State& state, bool topology) {
  const Problem problem = chain(static_cast<int>(state.range(0)), static_cast<int>(state.range(1)));
  const Program program = compile(problem, generate(*find_family("zb-h1"), problem));
  const Links links = topology ? shared(problem) : problem.links;
  const ExecutionModel model = ExecutionModel::ideal();
  Jitter jitter;
  jitter.compute = {Distribution::lognormal, 0.05};
  jitter.transfer = {Distribution::normal, 0.05};
  TrialRunner runner(program, links, model, jitter, 0);
  std::chrono::steady_clock::duration plain{0};
  std::chrono::steady_clock::duration trials{0};
  std::uint64_t trial = 0;
  for (auto _ : state) {
    const auto begin = std::chrono::steady_clock::now();
    benchmark::DoNotOptimize(simulate(program, links, model).timeline.ranks.size());
    const auto middle = std::chrono::steady_clock::now();
    benchmark::DoNotOptimize(runner.makespan(trial++));
    plain += middle - begin;
    trials += std::chrono::steady_clock::now() - middle;
  }
  state.counters["trial_to_plain"] = seconds(trials) / seconds(plain);
  state.counters["plain_ms"] = 1e3 * seconds(plain) / static_cast<double>(state.iterations());
  state.counters["trial_ms"] = 1e3 * seconds(trials) / static_cast<double>(state.iterations());
  state.counters["instructions"] = static_cast<double>(program.size());
}
BENCHMARK_CAPTURE(BM_Trial, latency, false)
    ->Args({8, 24})
    ->Args({64, 512})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Trial, shared_links, true)
    ->Args({8, 24})
    ->Args({64, 512})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace counterflow
