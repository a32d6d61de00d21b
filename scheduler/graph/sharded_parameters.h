#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "scheduler/graph/gradient_sums.h"
#include "scheduler/ir/op.h"
#include "scheduler/problem/problem.h"

namespace counterflow {

// Does the op work with the parameters of its stage? What only moves activations does not. W does,
// as PyTorch has it: its runtime asks for an unsharded stage there too.
[[nodiscard]] constexpr bool reads_parameters(const Op& op) {
  return op.kind == OpKind::forward || op.kind == OpKind::recompute || is_backward(op.kind);
}

// Parameters that live in shards (Optimizer::sharding): of each stage one on every rank that holds
// a copy of it, by ascending rank. A stage is cut into units, each gathered by one collective: one
// for each of its sums of gradients that has a size, as long in proportion, so that what a rank has
// of a reduced bucket is what it has of the unit's parameters. A stage without gradients is one.
class ShardedParameters {
 public:
  // O(stages * replicas + sums).
  ShardedParameters(const Problem& problem, const GradientSums& sums);

  // Sizes; none where nothing is sharded.
  [[nodiscard]] std::span<const Bytes> units(Stage stage) const { return of(stage).units; }
  // Of all units.
  [[nodiscard]] Bytes size(Stage stage) const { return of(stage).size; }
  // Who has a shard, ascending.
  [[nodiscard]] const std::vector<Rank>& holders(Stage stage) const { return of(stage).holders; }
  // The shard of a holder: its part of each unit. O(units).
  [[nodiscard]] Bytes shard(Stage stage, Rank rank) const;
  // Which shard is the rank's, counted from 0.
  [[nodiscard]] std::size_t number(Stage stage, Rank rank) const;

 private:
  struct OfStage {
    std::vector<Bytes> units;
    Bytes size;
    std::vector<Rank> holders;
  };
  [[nodiscard]] const OfStage& of(Stage stage) const {
    return stages_[static_cast<std::size_t>(stage)];
  }

  std::vector<OfStage> stages_;
};

}  // namespace counterflow
