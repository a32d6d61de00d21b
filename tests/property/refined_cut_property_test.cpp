#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <random>
#include <string_view>
#include <vector>

#include "scheduler/graph/evaluate.h"
#include "scheduler/partition/refine.h"
#include "scheduler/problem/layers.h"
#include "schedules/registry.h"
#include "tests/support/problems.h"
#include "tests/support/random_problems.h"

// Cuts found by moves beside the best of all cuts, by the makespan of a published schedule.
namespace counterflow {
namespace {

using testing::draw;
using testing::uniform_problem;

struct Model {
  std::vector<Layer> layers;
  Problem problem;
  Schedule schedule;

  [[nodiscard]] CutScore score(const Cut& cut) const {
    Problem cut_up = problem;
    std::vector<StageCost> costs;
    for (const StageSum& sum : stage_sums(layers, cut)) costs.push_back(sum.cost);
    cut_up.costs = Costs(costs);
    return CutScore{0, Evaluator(cut_up).makespan(schedule), 0};
  }
};

Model random_model(std::mt19937_64& random) {
  constexpr std::string_view kFamilies[] = {"1f1b", "zb-h1", "interleaved-1f1b", "zbv"};
  const Family& family = *find_family(kFamilies[draw(random, 0, 3)]);
  const int chunks = family.default_chunks;
  const int ranks = static_cast<int>(draw(random, 3, chunks == 1 ? 5 : 3));
  // One draw a statement: compilers evaluate arguments in different orders.
  const Time latency{draw(random, 0, 5)};
  const int microbatches = static_cast<int>(draw(random, 2, 12));
  Model model;
  model.problem = uniform_problem(family.placement, ranks, chunks, microbatches, Time{1}, Time{1},
                                  Time{1}, latency);
  model.schedule = generate(family, model.problem);
  const std::int64_t count = ranks * chunks + draw(random, 5, 8);
  for (std::int64_t i = 0; i < count; ++i) {
    Layer layer;
    layer.cost = {Time{draw(random, 1, 20)}, Time{draw(random, 0, 20)}, Time{draw(random, 0, 20)}};
    model.layers.push_back(layer);
  }
  return model;
}

void for_each_cut(int layers, int stages, Cut& cut, const std::function<void(const Cut&)>& visit) {
  if (stages == 1) {
    cut.push_back(layers);
    visit(cut);
    cut.pop_back();
    return;
  }
  for (int size = 1; size + stages - 1 <= layers; ++size) {
    cut.push_back(size);
    for_each_cut(layers - size, stages - 1, cut, visit);
    cut.pop_back();
  }
}

TEST(RefinedCut, IsNearlyAlwaysTheFastestOfAllCuts) {
  constexpr int kRounds = 200;
  std::mt19937_64 random(5);
  int fastest = 0;
  for (int round = 0; round < kRounds; ++round) {
    const Model model = random_model(random);
    const int stages = model.problem.stages();
    const auto layers = static_cast<int>(model.layers.size());
    std::int64_t cuts = 0;
    Time best = Time::max();
    Cut cut;
    for_each_cut(layers, stages, cut, [&](const Cut& each) {
      best = std::min(best, model.score(each).makespan);
      ++cuts;
    });
    const RefinedCut found = refine_cut(
        {even_cut(model.layers, stages)}, [&](const Cut& each) { return model.score(each); },
        cuts / 2);
    ASSERT_GE(found.score.makespan, best);
    ASSERT_EQ(model.score(found.cut).makespan, found.score.makespan);
    EXPECT_LE(found.score.makespan.count(), best.count() * 103 / 100);
    fastest += found.score.makespan == best ? 1 : 0;
  }
  EXPECT_GE(fastest, kRounds * 9 / 10);
}

}  // namespace
}  // namespace counterflow
