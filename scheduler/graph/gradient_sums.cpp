#include "scheduler/graph/gradient_sums.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace counterflow {
namespace {

// FP32.
constexpr std::int64_t kElement = 4;

// Whoever shares tied parameters and trains them.
std::vector<Stage> trained(const Problem& problem, const TiedParameters& tied) {
  std::vector<Stage> stages;
  std::ranges::copy_if(tied.stages, std::back_inserter(stages),
                       [&](Stage stage) { return problem.needs_backward_weight(stage); });
  return stages;
}

template <typename T>
void make_set(std::vector<T>& entries) {
  std::ranges::sort(entries);
  entries.erase(std::unique(entries.begin(), entries.end()), entries.end());
}

}  // namespace

GradientSums::GradientSums(const Problem& problem)
    : of_stage_(static_cast<std::size_t>(problem.stages())) {
  std::vector<Bytes> own(of_stage_.size());
  if (problem.optimizer) {
    own = problem.optimizer->gradients;
    for (const TiedParameters& tied : problem.optimizer->tied) {
      for (const Stage stage : tied.stages) own[static_cast<std::size_t>(stage)] -= tied.size;
    }
  }
  for (Stage stage = 0; stage < problem.stages(); ++stage) {
    if (!problem.needs_backward_weight(stage)) continue;
    add_buckets(problem, stage, own[static_cast<std::size_t>(stage)]);
  }
  if (!problem.optimizer) return;
  for (const TiedParameters& tied : problem.optimizer->tied) {
    if (auto stages = trained(problem, tied); !stages.empty()) {
      add(problem, std::move(stages), 0, tied.size);
    }
  }
}

void GradientSums::add_buckets(const Problem& problem, Stage stage, Bytes own) {
  const std::int64_t most =
      problem.optimizer ? problem.optimizer->bucket.value / kElement * kElement : 0;
  if (most == 0 || own.value <= most) return add(problem, {stage}, 0, own);
  for (std::uint16_t bucket = 0; own.value > 0; ++bucket) {
    const Bytes size{std::min(own.value, most)};
    add(problem, {stage}, bucket, size);
    own -= size;
  }
}

void GradientSums::add(const Problem& problem, std::vector<Stage> stages, std::uint16_t bucket,
                       Bytes size) {
  const auto id = static_cast<Id>(sums_.size());
  Sum sum{std::move(stages), bucket, size, {}, false};
  sum.is_scattered = problem.optimizer && problem.optimizer->sharding && sum.stages.size() == 1;
  for (const Stage stage : sum.stages) {
    of_stage_[static_cast<std::size_t>(stage)].push_back(id);
    for (int replica = 0; replica < problem.placement.replicas(); ++replica) {
      sum.holders.push_back(problem.placement.rank_of(stage, replica));
    }
  }
  make_set(sum.holders);
  sums_.push_back(std::move(sum));
}

std::vector<GradientSums::Id> GradientSums::on(const Problem& problem, Rank rank) const {
  std::vector<Id> ids;
  for (const Chunk& chunk : problem.placement.chunks_of(rank)) {
    const auto sums = of(chunk.stage);
    ids.insert(ids.end(), sums.begin(), sums.end());
  }
  make_set(ids);
  return ids;
}

}  // namespace counterflow
