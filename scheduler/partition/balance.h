#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "scheduler/problem/layout.h"

// Contiguous cuts of layers into stages so that the most loaded rank has least.
namespace counterflow {

// Layers with additive loads, and stages whose loads count together where they share a rank.
// Numbers are zero or more; loads sum to less than 2^62.
struct CutProblem {
  std::vector<std::int64_t> load;  // [layer]
  std::vector<int> group;          // [stage] 0..G-1, each at least once: whose loads add up

  // What a rank has to hold: for each of its stages the fixed sizes of its layers, and `copies` of
  // their held ones. Empty `room`: no limit, the other three are not read.
  std::vector<std::int64_t> fixed;   // [layer]
  std::vector<std::int64_t> held;    // [layer]
  std::vector<std::int64_t> copies;  // [stage]
  std::vector<std::int64_t> room;    // [group]

  [[nodiscard]] std::size_t layers() const { return load.size(); }
  [[nodiscard]] std::size_t stages() const { return group.size(); }
  [[nodiscard]] std::size_t groups() const;
};

struct BalancedCut {
  Cut cut;  // no stage is empty
  std::int64_t bottleneck = 0;
  std::int64_t lower_bound = 0;  // of any cut's bottleneck; the cut is optimal where they are equal
};

// Nodes of the branch and bound: plenty for a model cut interactively, and enough for a start.
inline constexpr std::int64_t kThoroughBudget = 2'000'000;
inline constexpr std::int64_t kQuickBudget = 50'000;

// The cut with the least bottleneck; of equals one with the least sum of squares, so that equal
// layers give stages that differ by one at most, the larger ones first. Exact with one stage a
// group, by dynamic programming in about O(layers^2); else by branch and bound on the bottleneck,
// exact unless it takes more than `budget` nodes, and tidied by moves of single layers. nullopt:
// there are fewer layers than stages, or no cut that fits was found.
[[nodiscard]] std::optional<BalancedCut> balanced_cut(const CutProblem& problem,
                                                      std::int64_t budget = kThoroughBudget);

// Load of each group under a cut. O(layers + stages).
[[nodiscard]] std::vector<std::int64_t> group_loads(const CutProblem& problem, const Cut& cut);

}  // namespace counterflow
