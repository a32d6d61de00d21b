#include "scheduler/partition/balance.h"

#include <algorithm>

#include "scheduler/partition/cut_sums.h"

namespace counterflow {

std::size_t CutProblem::groups() const {
  return static_cast<std::size_t>(*std::max_element(group.begin(), group.end()) + 1);
}

std::vector<std::int64_t> group_loads(const CutProblem& problem, const Cut& cut) {
  std::vector<std::int64_t> loads(problem.groups(), 0);
  std::size_t layer = 0;
  for (std::size_t stage = 0; stage < cut.size(); ++stage) {
    for (int i = 0; i < cut[stage]; ++i) {
      loads[static_cast<std::size_t>(problem.group[stage])] += problem.load[layer++];
    }
  }
  return loads;
}

std::optional<BalancedCut> balanced_cut(const CutProblem& problem, std::int64_t budget) {
  if (problem.layers() < problem.stages()) return std::nullopt;
  if (problem.groups() < problem.stages()) return grouped_cut(problem, budget);
  const std::optional<Cut> cut = chain_cut(problem);
  if (!cut) return std::nullopt;
  const std::vector<std::int64_t> loads = group_loads(problem, *cut);
  const std::int64_t bottleneck = *std::max_element(loads.begin(), loads.end());
  return BalancedCut{.cut = *cut, .bottleneck = bottleneck, .lower_bound = bottleneck};
}

}  // namespace counterflow
