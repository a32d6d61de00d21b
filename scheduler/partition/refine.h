#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <vector>

#include "scheduler/ir/units.h"
#include "scheduler/problem/layout.h"

namespace counterflow {

// How good a cut is; smaller is better, in this order.
struct CutScore {
  double excess = 0;  // bytes beyond the memory of the ranks, summed; infinite: it cannot run
  Time makespan{0};
  double unevenness = 0;  // settles what the makespan leaves open

  friend auto operator<=>(const CutScore&, const CutScore&) = default;
};

// Scores a cut without empty stages. Called once a cut.
using ScoreCut = std::function<CutScore(const Cut&)>;

struct RefinedCut {
  Cut cut;
  CutScore score;
  std::int64_t scored = 0;  // how many cuts were scored
};

// The best cut found from these starts, at least one, by moves of one layer from a stage to
// another, through those between them, near stages first. Scores the starts and then at most `most`
// cuts. Deterministic.
[[nodiscard]] RefinedCut refine_cut(const std::vector<Cut>& starts, const ScoreCut& score,
                                    std::int64_t most);

}  // namespace counterflow
