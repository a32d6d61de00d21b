#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "scheduler/partition/balance.h"

namespace counterflow {

// Sums over ranges of layers in O(1). The problem must outlive it.
class CutSums {
 public:
  explicit CutSums(const CutProblem& problem) : problem_(problem), load_(prefix(problem.load)) {
    if (!limited()) return;
    fixed_ = prefix(problem.fixed);
    held_ = prefix(problem.held);
  }

  [[nodiscard]] bool limited() const { return !problem_.room.empty(); }
  [[nodiscard]] std::int64_t load(std::size_t begin, std::size_t end) const {
    return load_[end] - load_[begin];
  }
  // What stage `stage` of these layers has to hold. A double: copies may be many.
  [[nodiscard]] double need(std::size_t stage, std::size_t begin, std::size_t end) const {
    return static_cast<double>(fixed_[end] - fixed_[begin]) +
           static_cast<double>(problem_.copies[stage]) *
               static_cast<double>(held_[end] - held_[begin]);
  }
  [[nodiscard]] double room(std::size_t group) const {
    return static_cast<double>(problem_.room[group]);
  }

 private:
  static std::vector<std::int64_t> prefix(const std::vector<std::int64_t>& values) {
    std::vector<std::int64_t> sums{0};
    sums.reserve(values.size() + 1);
    for (const std::int64_t value : values) sums.push_back(sums.back() + value);
    return sums;
  }

  const CutProblem& problem_;
  std::vector<std::int64_t> load_;
  std::vector<std::int64_t> fixed_;
  std::vector<std::int64_t> held_;
};

// The two ways to the least bottleneck. Both need at least as many layers as stages.

// One stage a group: dynamic programming, exact. nullopt: no cut fits.
[[nodiscard]] std::optional<Cut> chain_cut(const CutProblem& problem);

// Any groups: branch and bound. nullopt: no cut that fits was found.
[[nodiscard]] std::optional<BalancedCut> grouped_cut(const CutProblem& problem,
                                                     std::int64_t budget);

}  // namespace counterflow
