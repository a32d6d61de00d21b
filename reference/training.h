#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "reference/poison.h"
#include "reference/shards.h"
#include "reference/single_process.h"
#include "reference/skipped_step.h"
#include "scheduler/graph/gradient_sums.h"

namespace counterflow::reference {

// Stochastic gradient descent: w -= rate * factor * gradient, where factor brings the norm of all
// gradients down to `clip` if the problem asks for that norm and it is larger. A step whose
// gradients are not finite is skipped: with the norm by all stages, for an infinity or a NaN
// anywhere makes the norm one, and every rank reads the same norm; else by the stages whose own are
// not, which every rank that holds a copy knows from the same sums; of what is sharded by the
// shards whose own are not.
struct Sgd {
  float rate = 0.1F;
  float clip = 1;

  // From the sum of the squares of all gradients, which must be finite.
  [[nodiscard]] float factor(float squares) const;
  void step(std::span<float> parameters, std::span<const float> gradient, float factor) const;
  // The same where these elements are: of both vectors.
  void step(std::span<float> parameters, std::span<const float> gradient, float factor,
            std::span<const Segment> where) const;
};

// The sum of squares of what a rank holds, in the order of its sums; of what several ranks hold the
// first counts it, of what is scattered each its part. `ids` are those of GradientSums::on().
[[nodiscard]] float share_of_norm(const GradientSums& sums, const Shards& shards,
                                  std::span<const GradientSums::Id> ids,
                                  std::span<const std::span<const float>> values, Rank rank);

// The share of one rank in a sum: its chunks' gradients in chunk order, the first as it is and the
// others added. `gradient(chunk)` gives a chunk's own, as a span.
template <typename Gradient>
[[nodiscard]] std::vector<float> share_of_sum(const Problem& problem, const GradientSums& sums,
                                              GradientSums::Id id, Rank rank, Gradient gradient) {
  std::vector<float> share;
  for (const Chunk& chunk : problem.placement.chunks_of(rank)) {
    const auto& stages = sums[id].stages;
    if (std::find(stages.begin(), stages.end(), chunk.stage) == stages.end()) continue;
    const Segment segment = segment_of(sums, chunk.stage, id);
    const std::span<const float> whole = gradient(chunk);
    const auto part = whole.subspan(segment.first, segment.count);
    if (share.empty()) {
      share.assign(part.begin(), part.end());
    } else {
      for (std::size_t i = 0; i < share.size(); ++i) share[i] += part[i];
    }
  }
  return share;
}

// What training without a pipeline comes to.
struct Trained {
  StepResult<float> last;  // step
  Parameters<float> parameters;
  std::vector<SkippedStep> skipped{};  // ascending
};
// The problem must have an optimizer. Sums run in the order of the program's: of a copy's
// microbatches, of a rank's chunks, of the ranks; the norm by rank.
[[nodiscard]] Trained single_process_training(const Model<float>& model, const Problem& problem,
                                              const Sgd& sgd, int steps, const Poison& poison = {});

}  // namespace counterflow::reference
