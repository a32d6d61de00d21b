#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scheduler/problem/config.h"

// pipeline.keep_together: groups of stages that must share a rank, as with tied weights; of layers
// where the config lists those.
namespace counterflow {

// 0 where each group shares a rank; else how far apart they are, so that a search for a cut can see
// its way: layers between neighbours, and much more where whole stages lie between. `cut`: the
// layers of each stage; nullptr where groups name stages. O(size of the groups + stages).
[[nodiscard]] std::int64_t distance_apart(const std::vector<std::vector<int>>& groups,
                                          const Placement& placement, const Cut* cut);

// Two of a group that do not share a rank, and where they are; "" where each group does.
[[nodiscard]] std::string apart_text(const std::vector<std::vector<int>>& groups,
                                     const Placement& placement, const Cut* cut);

// Throws InputError naming two that do not share a rank, or one that does not exist.
void check_together(const Config& config, const Placement& placement, const Cut* cut);

}  // namespace counterflow
