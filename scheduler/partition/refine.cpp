#include "scheduler/partition/refine.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>

namespace counterflow {
namespace {

// Takes one layer from a stage and gives one to another. Stages between them keep their number:
// their boundaries shift.
struct Move {
  std::size_t from = 0;
  std::size_t to = 0;
};

std::vector<Move> moves(std::size_t stages) {
  std::vector<Move> all;
  for (std::size_t distance = 1; distance < stages; ++distance) {
    for (std::size_t stage = 0; stage + distance < stages; ++stage) {
      all.push_back({stage, stage + distance});
      all.push_back({stage + distance, stage});
    }
  }
  return all;
}

class Refinement {
 public:
  Refinement(const ScoreCut& score, std::int64_t most) : score_(score), left_(most) {}

  void start(const Cut& cut) {
    if (!seen_.insert(cut).second) return;
    consider(cut);
  }

  // Goes downhill from the best start until no move helps.
  RefinedCut finish() {
    const std::vector<Move> all = moves(best_.cut.size());
    std::size_t in_vain = 0;  // moves in a row
    for (std::size_t i = 0; in_vain < all.size() && left_ > 0; ++i) {
      in_vain = try_move(all[i % all.size()]) ? 0 : in_vain + 1;
    }
    return best_;
  }

 private:
  bool try_move(const Move& move) {
    if (best_.cut[move.from] < 2) return false;
    Cut cut = best_.cut;
    --cut[move.from];
    ++cut[move.to];
    if (!seen_.insert(cut).second) return false;
    --left_;
    return consider(cut);
  }

  bool consider(const Cut& cut) {
    const CutScore score = score_(cut);
    ++best_.scored;
    if (!best_.cut.empty() && !(score < best_.score)) return false;
    best_.cut = cut;
    best_.score = score;
    return true;
  }

  const ScoreCut& score_;
  std::int64_t left_;
  std::set<Cut> seen_;
  RefinedCut best_;
};

}  // namespace

RefinedCut refine_cut(const std::vector<Cut>& starts, const ScoreCut& score, std::int64_t most) {
  Refinement refinement(score, most);
  for (const Cut& cut : starts) refinement.start(cut);
  return refinement.finish();
}

}  // namespace counterflow
