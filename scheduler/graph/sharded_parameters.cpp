#include "scheduler/graph/sharded_parameters.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "scheduler/graph/part.h"

namespace counterflow {
namespace {

constexpr std::int64_t kElement = 4;

// Where a cut after `done` of `all` bytes of gradients falls in the parameters.
std::int64_t cut(std::int64_t parameters, std::int64_t done, std::int64_t all) {
  if (parameters == all) return done;
  if (done == all) return parameters;
  const double share = static_cast<double>(done) / static_cast<double>(all);
  const auto at = static_cast<std::int64_t>(std::floor(static_cast<double>(parameters) * share));
  return std::clamp<std::int64_t>(at / kElement * kElement, 0, parameters);
}

std::vector<Bytes> units_of(Bytes parameters, const GradientSums& sums, Stage stage) {
  std::int64_t all = 0;
  for (const GradientSums::Id id : sums.of(stage)) all += sums[id].size.value;
  std::vector<Bytes> units;
  if (parameters.value == 0) return units;
  if (all == 0) return {parameters};
  std::int64_t done = 0;
  std::int64_t begin = 0;
  for (const GradientSums::Id id : sums.of(stage)) {
    if (sums[id].size.value == 0) continue;
    done += sums[id].size.value;
    const std::int64_t end = cut(parameters.value, done, all);
    units.push_back(Bytes{end - begin});
    begin = end;
  }
  return units;
}

}  // namespace

ShardedParameters::ShardedParameters(const Problem& problem, const GradientSums& sums)
    : stages_(static_cast<std::size_t>(problem.stages())) {
  if (!problem.optimizer || !problem.optimizer->sharding) return;
  for (Stage stage = 0; stage < problem.stages(); ++stage) {
    OfStage& own = stages_[static_cast<std::size_t>(stage)];
    own.size = problem.optimizer->sharding->parameters[static_cast<std::size_t>(stage)];
    own.units = units_of(own.size, sums, stage);
    for (int replica = 0; replica < problem.placement.replicas(); ++replica) {
      own.holders.push_back(problem.placement.rank_of(stage, replica));
    }
    std::ranges::sort(own.holders);
    own.holders.erase(std::unique(own.holders.begin(), own.holders.end()), own.holders.end());
  }
}

std::size_t ShardedParameters::number(Stage stage, Rank rank) const {
  const std::vector<Rank>& all = holders(stage);
  return static_cast<std::size_t>(std::ranges::lower_bound(all, rank) - all.begin());
}

Bytes ShardedParameters::shard(Stage stage, Rank rank) const {
  Bytes sum;
  for (const Bytes unit : units(stage)) {
    sum += part_of(unit, number(stage, rank), holders(stage).size()).size;
  }
  return sum;
}

}  // namespace counterflow
