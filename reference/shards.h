#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "executor/memory.h"
#include "scheduler/graph/sharded_parameters.h"
#include "scheduler/problem/problem.h"

namespace counterflow::reference {

// A run of the elements of a vector.
struct Segment {
  std::size_t first = 0;
  std::size_t count = 0;
};

// Is every element of these finite?
[[nodiscard]] bool all_finite(std::span<const float> values, std::span<const Segment> where);

// Where a stage's share of a sum stands in the gradient of the stage, and how long it is.
[[nodiscard]] Segment segment_of(const GradientSums& sums, Stage stage, GradientSums::Id id);

// Which elements of a stage's FP32 parameters, gradients included, a rank answers for: its shard of
// each unit where parameters are sharded, else all. Where they are, parameters are as large as
// gradients here.
class Shards {
 public:
  // The problem must outlive it.
  Shards(const Problem& problem, const GradientSums& sums);

  [[nodiscard]] bool any() const { return problem_.optimizer && problem_.optimizer->sharding; }
  // Of `parameters` elements, ascending.
  [[nodiscard]] std::vector<Segment> owned(Stage stage, Rank rank, std::size_t parameters) const;
  // Those of each rank that has a shard; a single one of all elements where nothing is sharded.
  [[nodiscard]] std::vector<std::vector<Segment>> pieces(Stage stage, std::size_t parameters) const;
  // Which elements of its own vector a sum has for the rank once it is reduced.
  [[nodiscard]] Segment reduced(GradientSums::Id id, Rank rank) const;
  // The vector that the ranks' copies of a stage make together, each its own elements;
  // `of(replica)` gives a copy's, all as large.
  template <typename Of>
  [[nodiscard]] std::vector<float> assembled(Stage stage, Of of) const {
    const std::span<const float> first = of(0);
    std::vector<float> whole(first.begin(), first.end());
    if (!any()) return whole;
    for (int replica = 0; replica < problem_.placement.replicas(); ++replica) {
      const std::span<const float> part = of(replica);
      const Rank rank = problem_.placement.rank_of(stage, replica);
      for (const Segment& own : owned(stage, rank, whole.size())) {
        for (std::size_t i = own.first; i < own.first + own.count; ++i) whole[i] = part[i];
      }
    }
    return whole;
  }

  // UNSHARD: the rank's part of the parameters to its place in the units; the rest of them is NaN.
  void copy_in(Stage stage, Rank rank, std::span<const float> parameters,
               std::span<const exec::Buffer> units) const;
  // The units as one vector.
  [[nodiscard]] static std::vector<float> copy_out(std::span<const exec::Buffer> units);
  // RESHARD: a compute that still read them would show.
  static void free(std::span<const exec::Buffer> units);

 private:
  const Problem& problem_;
  const GradientSums sums_;
  const ShardedParameters parameters_;
};

}  // namespace counterflow::reference
