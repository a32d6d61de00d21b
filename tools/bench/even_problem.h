#pragma once

#include <cstddef>
#include <vector>

#include "schedules/registry.h"

namespace counterflow {

// Equal stages on a family's placement, with costs that no two kinds share and links with latency.
[[nodiscard]] inline Problem even_problem(const Family& family, int ranks, int microbatches,
                                          int chunks) {
  Problem problem;
  problem.placement = Placement(family.placement, ranks, chunks);
  const int stages = problem.placement.stages();
  problem.graph = StageGraph::chain(stages);
  problem.microbatches = microbatches;
  const auto count = static_cast<std::size_t>(stages);
  problem.costs = Costs(std::vector<StageCost>(count, {Time{1000}, Time{1100}, Time{900}}));
  problem.memory.assign(count, {Bytes{1}, Bytes{1}});
  problem.frozen.assign(count, 0);
  problem.message.assign(count, Bytes{0});
  problem.links = Links(Time{30});
  return problem;
}

}  // namespace counterflow
