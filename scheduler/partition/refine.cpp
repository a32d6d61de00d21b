#include "scheduler/partition/refine.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <numeric>
#include <random>
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

// Kicks in a row after which the best cut is taken for good.
constexpr int kKicksInVain = 100;

class Refinement {
 public:
  Refinement(const ScoreCut& score, std::int64_t most, std::uint64_t seed)
      : score_(score), left_(most), random_(seed) {}

  void start(const Cut& cut) { consider(cut, best_); }

  // Scores every cut.
  RefinedCut finish_with_all() {
    const Cut& any = best_.cut;
    Cut cut;
    extend(cut, std::accumulate(any.begin(), any.end(), 0), any.size());
    best_.scored = std::ssize(scores_);
    best_.complete = true;
    return best_;
  }

  RefinedCut finish() {
    moves_ = moves(best_.cut.size());
    descend(best_);
    for (int in_vain = 0; in_vain < kKicksInVain && left_ > 0; ++in_vain) {
      RefinedCut other = kicked();
      descend(other);
      if (other.score < best_.score) {
        best_ = std::move(other);
        in_vain = 0;
      }
    }
    best_.scored = std::ssize(scores_);
    return best_;
  }

 private:
  // All ways to go on with so many layers left for so many stages.
  void extend(Cut& cut, int layers, std::size_t stages) {
    if (stages == 1) {
      cut.push_back(layers);
      start(cut);
      cut.pop_back();
      return;
    }
    for (int size = 1; size + static_cast<int>(stages) - 1 <= layers; ++size) {
      cut.push_back(size);
      extend(cut, layers - size, stages - 1);
      cut.pop_back();
    }
  }

  // Downhill until no move helps.
  void descend(RefinedCut& from) {
    std::size_t in_vain = 0;  // moves in a row
    for (std::size_t i = 0; in_vain < moves_.size() && left_ > 0; ++i) {
      in_vain = try_move(moves_[i % moves_.size()], from) ? 0 : in_vain + 1;
    }
  }

  bool try_move(const Move& move, RefinedCut& at) {
    Cut cut = at.cut;
    return apply(move, cut) && consider(cut, at);
  }

  static bool apply(const Move& move, Cut& cut) {
    if (cut[move.from] < 2) return false;
    --cut[move.from];
    ++cut[move.to];
    return true;
  }

  // Some random moves away from the best.
  RefinedCut kicked() {
    RefinedCut other;
    Cut cut = best_.cut;
    for (std::uint64_t left = 2 + random_() % 4; left > 0 && !moves_.empty(); --left) {
      apply(moves_[static_cast<std::size_t>(random_() % moves_.size())], cut);
    }
    consider(cut, other);
    return other;
  }

  // Takes the cut if it is better than what is there.
  bool consider(const Cut& cut, RefinedCut& at) {
    const CutScore score = score_of(cut);
    if (!at.cut.empty() && !(score < at.score)) return false;
    at.cut = cut;
    at.score = score;
    return true;
  }

  CutScore score_of(const Cut& cut) {
    const auto [place, is_new] = scores_.try_emplace(cut);
    if (is_new) {
      place->second = score_(cut);
      --left_;
    }
    return place->second;
  }

  const ScoreCut& score_;
  std::int64_t left_;
  std::mt19937_64 random_;
  std::vector<Move> moves_;
  std::map<Cut, CutScore> scores_;
  RefinedCut best_;
};

// How many cuts without an empty stage there are, or one more than `most`: binomial(layers - 1,
// stages - 1).
std::int64_t number_of_cuts(std::int64_t layers, std::int64_t stages, std::int64_t most) {
  std::int64_t cuts = 1;
  for (std::int64_t k = 1; k < stages; ++k) {
    // A product of two below 2^31 fits; anything larger is beyond all budgets.
    if (cuts > (std::int64_t{1} << 31U)) return most + 1;
    cuts = cuts * (layers - k) / k;
  }
  return std::min(cuts, most + 1);
}

}  // namespace

RefinedCut refine_cut(const std::vector<Cut>& starts, const ScoreCut& score, std::int64_t most,
                      std::uint64_t seed) {
  Refinement refinement(score, most, seed);
  for (const Cut& cut : starts) refinement.start(cut);
  const Cut& any = starts.front();
  const std::int64_t cuts = number_of_cuts(std::accumulate(any.begin(), any.end(), std::int64_t{0}),
                                           std::ssize(any), most);
  return cuts <= most ? refinement.finish_with_all() : refinement.finish();
}

}  // namespace counterflow
