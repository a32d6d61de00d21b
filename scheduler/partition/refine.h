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
  bool complete = false;    // all there are, so there is no better one
};

// The best cut found from these starts, at least one: the best of all if there are at most `most`.
// Else by moves of one layer from a stage to another, through those between them, near stages
// first, and where no move helps, from the best cut with a few random ones; scores at most
// `most` cuts, and all starts. The same seed, the same cut.
[[nodiscard]] RefinedCut refine_cut(const std::vector<Cut>& starts, const ScoreCut& score,
                                    std::int64_t most, std::uint64_t seed = 0);

}  // namespace counterflow
