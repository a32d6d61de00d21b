#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "driver/auto_schedule.h"
#include "scheduler/graph/evaluate.h"
#include "scheduler/problem/problem.h"
#include "scheduler/search/random.h"
#include "scheduler/search/search.h"
#include "schedules/registry.h"
#include "tests/support/solved_problems.h"

// How good and how fast the search is. Gaps are to the proven lower bound, in percent.
namespace counterflow {
namespace {

// Costs of whole units of 1000 ns, 5 to 20 for each stage and kind.
Problem random_stages(PlacementKind kind, int ranks, int chunks, int microbatches,
                      std::int64_t held, std::uint64_t seed) {
  SearchRandom random(seed);
  const auto cost = [&] { return Time(1000 * (5 + static_cast<std::int64_t>(random.below(16)))); };
  Problem problem;
  problem.placement = Placement(kind, ranks, chunks);
  const auto stages = static_cast<std::size_t>(problem.placement.stages());
  problem.graph = StageGraph::chain(problem.placement.stages());
  problem.microbatches = microbatches;
  std::vector<StageCost> costs(stages);
  for (StageCost& each : costs) each = {cost(), cost(), cost()};
  problem.costs = Costs(costs);
  problem.memory.assign(stages, StageMemory{Bytes{1}, Bytes{1}});
  problem.frozen.assign(stages, 0);
  problem.links = Links(Time{2000});
  problem.message.assign(stages, Bytes{0});
  if (held > 0) problem.limits.activations.assign(static_cast<std::size_t>(ranks), held);
  return problem;
}

Problem even_stages(PlacementKind kind, int ranks, int chunks, int microbatches,
                    std::int64_t held) {
  Problem problem = random_stages(kind, ranks, chunks, microbatches, held, 0);
  problem.costs = Costs(std::vector<StageCost>(problem.costs.stages().size(),
                                               {Time{10'000}, Time{11'000}, Time{8'000}}));
  problem.links = Links(Time{1000});
  return problem;
}

SearchBudget for_milliseconds(std::int64_t milliseconds) {
  SearchBudget budget;
  budget.time = std::chrono::milliseconds(milliseconds);
  return budget;
}

double gap(const SearchResult& result) {
  return 100.0 * (static_cast<double>(result.makespan.count()) /
                      static_cast<double>(result.lower_bound.count()) -
                  1);
}

// Small problems of all placements, limits from tight to loose; the argument: milliseconds each.
void BM_SearchSmall(benchmark::State& state) {
  constexpr int kProblems = 48;
  std::vector<double> gaps;
  for (auto _ : state) {
    gaps.clear();
    SearchRandom random(1);
    for (int i = 0; i < kProblems; ++i) {
      constexpr PlacementKind kKinds[] = {PlacementKind::loop, PlacementKind::loop,
                                          PlacementKind::v, PlacementKind::bidirectional};
      const PlacementKind kind = kKinds[i % 4];
      const int chunks = i % 4 == 1 || i % 4 == 2 ? 2 : 1;
      const int ranks = 2 * static_cast<int>(1 + random.below(3));
      const int microbatches =
          ranks / 2 + static_cast<int>(random.below(static_cast<std::uint32_t>(2 * ranks)));
      const std::int64_t held = 2 + random.below(static_cast<std::uint32_t>(2 * ranks * chunks));
      const Problem problem =
          random_stages(kind, ranks, chunks, microbatches, held, static_cast<std::uint64_t>(i));
      gaps.push_back(gap(search(problem, {}, for_milliseconds(state.range(0)))));
    }
  }
  std::ranges::sort(gaps);
  state.counters["median_gap"] = gaps[gaps.size() / 2];
  state.counters["p90_gap"] = gaps[gaps.size() * 9 / 10];
  state.counters["worst_gap"] = gaps.back();
  state.counters["proven"] = static_cast<double>(std::ranges::count(gaps, 0.0));
}
BENCHMARK(BM_SearchSmall)->Arg(50)->Arg(200)->Iterations(1)->Unit(benchmark::kMillisecond);

// Problems of tests/data with the best makespans known; the argument: milliseconds each.
// `starts`: 1 for one core, 0 for all.
void measure_solved(benchmark::State& state, const std::string& file, int starts) {
  const std::vector<testing::SolvedProblem> problems =
      testing::solved_problems(std::string(TEST_DATA "/") + file);
  std::vector<double> gaps;
  for (auto _ : state) {
    gaps.clear();
    for (const testing::SolvedProblem& solved : problems) {
      SearchBudget budget = for_milliseconds(state.range(0));
      budget.starts = starts;
      const SearchResult result = search(solved.problem, family_schedules(solved.problem), budget);
      gaps.push_back(100.0 * (static_cast<double>(result.makespan.count()) /
                                  static_cast<double>(solved.makespan.count()) -
                              1));
    }
  }
  state.counters["problems"] = static_cast<double>(gaps.size());
  state.counters["within_1"] =
      static_cast<double>(std::ranges::count_if(gaps, [](double each) { return each <= 1; }));
  state.counters["worst_gap"] = *std::ranges::max_element(gaps);
}
void BM_SearchSample(benchmark::State& state) {
  measure_solved(state, "optimal_sample.json", 1);
}
void BM_SearchSolved(benchmark::State& state) {
  measure_solved(state, "solved_problems.json", 0);
}
BENCHMARK(BM_SearchSample)->Arg(50)->Arg(200)->Iterations(1)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_SearchSolved)->Arg(200)->Iterations(1)->Unit(benchmark::kMillisecond);

void measure_once(benchmark::State& state, const Problem& problem, std::int64_t milliseconds) {
  SearchResult result;
  const std::vector<Schedule> seeds = family_schedules(problem);
  for (auto _ : state) result = search(problem, seeds, for_milliseconds(milliseconds));
  state.counters["gap"] = gap(result);
  state.counters["tried"] = static_cast<double>(result.iterations);
}

// p=64, m=512.
void BM_SearchLargeEven(benchmark::State& state) {
  measure_once(state, even_stages(PlacementKind::loop, 64, 1, 512, 64), 5000);
}
void BM_SearchLargeRandom(benchmark::State& state) {
  measure_once(state, random_stages(PlacementKind::loop, 64, 1, 512, 64, 1), 5000);
}
void BM_SearchLargeV(benchmark::State& state) {
  measure_once(state, even_stages(PlacementKind::v, 64, 2, 512, 128), 5000);
}
void BM_SearchLargeLoop2(benchmark::State& state) {
  measure_once(state, even_stages(PlacementKind::loop, 64, 2, 512, 128), 5000);
}
void BM_SearchLargeBidirectional(benchmark::State& state) {
  measure_once(state, even_stages(PlacementKind::bidirectional, 64, 1, 512, 65), 5000);
}
// p=64, m=256: the zero-bubble heuristic as its only seed, which it must make in that time too.
void BM_SearchLikeZeroBubble(benchmark::State& state) {
  const Problem problem = state.range(0) == 0
                              ? even_stages(PlacementKind::loop, 64, 1, 256, 64)
                              : random_stages(PlacementKind::loop, 64, 1, 256, 64, 1);
  Time heuristic{0};
  SearchResult result;
  for (auto _ : state) {
    const auto begin = std::chrono::steady_clock::now();
    const std::vector<Schedule> seeds{generate(*find_family("zb-heuristic"), problem)};
    heuristic = Evaluator(problem).makespan(seeds[0]);
    const auto left = std::chrono::milliseconds(100) - (std::chrono::steady_clock::now() - begin);
    SearchBudget budget;
    budget.time = std::max(Time{1}, std::chrono::duration_cast<Time>(left));
    result = search(problem, seeds, budget);
  }
  state.counters["gap"] = gap(result);
  state.counters["percent_of_heuristic"] =
      100.0 * static_cast<double>(result.makespan.count()) / static_cast<double>(heuristic.count());
}
void BM_SearchVeryLarge(benchmark::State& state) {
  measure_once(state, even_stages(PlacementKind::loop, 256, 2, 1024, 512), 60'000);
}
BENCHMARK(BM_SearchLargeEven)->Iterations(1)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_SearchLargeRandom)->Iterations(1)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_SearchLargeV)->Iterations(1)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_SearchLargeLoop2)->Iterations(1)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_SearchLargeBidirectional)->Iterations(1)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_SearchLikeZeroBubble)->Arg(0)->Arg(1)->Iterations(1)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_SearchVeryLarge)->Iterations(1)->Unit(benchmark::kMillisecond);

// Costs change by up to a tenth; what was found for the old ones is the seed. Quality against a
// cold search of 500 ms: 100 is equal, less is better.
void BM_SearchAgain(benchmark::State& state) {
  constexpr int kChanges = 10;
  const Problem before = random_stages(PlacementKind::loop, 16, 1, 64, 16, 3);
  const std::vector<Schedule> seeds{search(before, {}, for_milliseconds(500)).schedule};
  double quality = 0;
  double milliseconds = 0;
  for (auto _ : state) {
    for (int change = 0; change < kChanges; ++change) {
      SearchRandom random(100 + static_cast<std::uint64_t>(change));
      std::vector<StageCost> costs = before.costs.stages();
      const auto changed = [&](Time cost) {
        return Time(cost.count() * (90 + static_cast<std::int64_t>(random.below(21))) / 100);
      };
      for (StageCost& each : costs) {
        each = {changed(each.forward), changed(each.backward_input), changed(each.backward_weight)};
      }
      Problem after = before;
      after.costs = Costs(costs);
      const auto begin = std::chrono::steady_clock::now();
      const SearchResult warm = search(after, seeds, for_milliseconds(state.range(0)));
      milliseconds +=
          std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
              .count();
      const SearchResult cold = search(after, {}, for_milliseconds(500));
      quality += 100.0 * static_cast<double>(warm.makespan.count()) /
                 static_cast<double>(cold.makespan.count());
    }
  }
  state.counters["quality"] = quality / kChanges;
  state.counters["ms_each"] = milliseconds / kChanges;
}
BENCHMARK(BM_SearchAgain)->Arg(8)->Iterations(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace counterflow
