#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "scheduler/partition/cut_sums.h"

namespace counterflow {
namespace {

constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();

// Sums of squares of loads that sum to less than 2^62 fit, exactly, so that equals are equals.
using Squares = unsigned __int128;

// A table over (stages used, layers used), filled stage by stage.
class ChainCut {
 public:
  explicit ChainCut(const CutProblem& problem)
      : problem_(problem), sums_(problem), stages_(problem.stages()), layers_(problem.layers()) {}

  // The least bottleneck, kNone if nothing fits. The scan of a stage's layers stops where the stage
  // alone is no better than what is known.
  [[nodiscard]] std::int64_t bottleneck() const {
    std::vector<std::int64_t> least(layers_ + 1, kNone);
    least[0] = 0;
    for (std::size_t stage = 0; stage < stages_; ++stage) {
      std::vector<std::int64_t> next(layers_ + 1, kNone);
      for (std::size_t end = stage + 1; end <= last_end(stage); ++end) {
        for (std::size_t begin = end; begin-- > stage;) {
          const std::int64_t own = sums_.load(begin, end);
          if (own >= next[end]) break;
          if (least[begin] != kNone && fits(stage, begin, end)) {
            next[end] = std::min(next[end], std::max(least[begin], own));
          }
        }
      }
      least = std::move(next);
    }
    return least[layers_];
  }

  // Of the cuts within the bottleneck the one with the least sum of squares; of equals the one with
  // fewer layers in later stages.
  [[nodiscard]] Cut evenest(std::int64_t bottleneck) const {
    constexpr Squares kInfinite = ~Squares{0};
    std::vector<Squares> least(layers_ + 1, kInfinite);
    least[0] = 0;
    std::vector<std::vector<std::uint16_t>> sizes(stages_, std::vector<std::uint16_t>(layers_ + 1));
    for (std::size_t stage = 0; stage < stages_; ++stage) {
      std::vector<Squares> next(layers_ + 1, kInfinite);
      for (std::size_t end = stage + 1; end <= last_end(stage); ++end) {
        for (std::size_t begin = end; begin-- > stage;) {
          const std::int64_t own = sums_.load(begin, end);
          if (own > bottleneck) break;
          if (least[begin] == kInfinite || !fits(stage, begin, end)) continue;
          const auto load = static_cast<Squares>(own);
          const Squares sum = least[begin] + load * load;
          if (sum >= next[end]) continue;
          next[end] = sum;
          sizes[stage][end] = static_cast<std::uint16_t>(end - begin);
        }
      }
      least = std::move(next);
    }
    Cut cut(stages_);
    std::size_t end = layers_;
    for (std::size_t stage = stages_; stage-- > 0;) {
      cut[stage] = sizes[stage][end];
      end -= sizes[stage][end];
    }
    return cut;
  }

 private:
  // Later stages need a layer each.
  [[nodiscard]] std::size_t last_end(std::size_t stage) const {
    return layers_ - (stages_ - 1 - stage);
  }
  [[nodiscard]] bool fits(std::size_t stage, std::size_t begin, std::size_t end) const {
    if (!sums_.limited()) return true;
    return sums_.need(stage, begin, end) <=
           sums_.room(static_cast<std::size_t>(problem_.group[stage]));
  }

  const CutProblem& problem_;
  CutSums sums_;
  std::size_t stages_;
  std::size_t layers_;
};

}  // namespace

std::optional<Cut> chain_cut(const CutProblem& problem) {
  const ChainCut table(problem);
  const std::int64_t bottleneck = table.bottleneck();
  if (bottleneck == kNone) return std::nullopt;
  return table.evenest(bottleneck);
}

}  // namespace counterflow
