// What a proven bound costs: with every report (quick), with a search (full), and an exact
// solution.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "scheduler/bounds/lower_bound.h"
#include "scheduler/search/exact.h"

namespace counterflow {
namespace {

// Uneven stages, at most `held` activations a rank.
Problem uneven_problem(PlacementKind kind, int ranks, int chunks, int microbatches,
                       std::int64_t held) {
  Problem problem;
  problem.placement = Placement(kind, ranks, chunks);
  const int stages = problem.placement.stages();
  problem.graph = StageGraph::chain(stages);
  problem.microbatches = microbatches;
  std::vector<StageCost> costs;
  for (std::int64_t s = 0; s < stages; ++s) {
    costs.push_back(
        {Time{1000 + 37 * (s % 7)}, Time{1100 + 53 * (s % 5)}, Time{800 + 41 * (s % 3)}});
  }
  problem.costs = Costs(costs);
  const auto count = static_cast<std::size_t>(stages);
  problem.memory.assign(count, {Bytes{1}, Bytes{1}});
  problem.frozen.assign(count, 0);
  problem.message.assign(count, Bytes{0});
  problem.links = Links(Time{30});
  problem.limits.activations.assign(static_cast<std::size_t>(ranks), held);
  return problem;
}

void BM_LowerBound(benchmark::State& state, BoundEffort effort) {
  const auto ranks = static_cast<int>(state.range(0));
  const auto chunks = static_cast<int>(state.range(2));
  const Problem problem = uneven_problem(PlacementKind::loop, ranks, chunks,
                                         static_cast<int>(state.range(1)), ranks * chunks);
  for (auto _ : state) benchmark::DoNotOptimize(lower_bound(problem, effort));
}
BENCHMARK_CAPTURE(BM_LowerBound, quick, BoundEffort::quick)
    ->Args({8, 32, 1})
    ->Args({64, 512, 1})
    ->Args({256, 1024, 2})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_LowerBound, full, BoundEffort::full)
    ->Args({8, 32, 1})
    ->Args({64, 512, 1})
    ->Args({64, 512, 4})
    ->Args({256, 1024, 2})
    ->Unit(benchmark::kMillisecond);

// Two stages a rank, a limit of a microbatch and a half: windows are what bounds it.
void BM_TightWindows(benchmark::State& state) {
  const Problem problem =
      uneven_problem(PlacementKind::v, 4, 2, static_cast<int>(state.range(0)), 3);
  for (auto _ : state) benchmark::DoNotOptimize(lower_bound(problem, BoundEffort::full));
}
BENCHMARK(BM_TightWindows)->Arg(6)->Arg(24)->Arg(64)->Unit(benchmark::kMillisecond);

void BM_ExactNodes(benchmark::State& state) {
  const Problem problem = uneven_problem(PlacementKind::v, 4, 2, 6, 5);
  std::int64_t nodes = 0;
  for (auto _ : state) nodes += solve_exactly(problem, nullptr, {.nodes = 1000}).nodes;
  state.SetItemsProcessed(nodes);
}
BENCHMARK(BM_ExactNodes)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace counterflow
