#include "reference/training.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace counterflow::reference {
namespace {

// One step's gradients, each added up as the program's ranks do.
class Reduced {
 public:
  Reduced(const Problem& problem, const std::vector<Parameters<float>>& of_copy)
      : problem_(problem), of_copy_(of_copy), sums_(problem), shards_(problem, sums_) {
    for (GradientSums::Id id = 0; id < sums_.size(); ++id) values_.push_back(add_up(id));
  }

  [[nodiscard]] std::vector<float> gradient(Stage stage) const {
    std::vector<float> whole;
    for (const GradientSums::Id id : sums_.of(stage)) {
      whole.insert(whole.end(), values_[id].begin(), values_[id].end());
    }
    return whole;
  }

  [[nodiscard]] const Shards& shards() const { return shards_; }

  [[nodiscard]] float squares() const {
    float sum = 0;
    bool first = true;
    for (Rank rank = 0; rank < problem_.ranks(); ++rank) {
      if (problem_.placement.chunks_of(rank).empty()) continue;
      const std::vector<GradientSums::Id> ids = sums_.on(problem_, rank);
      std::vector<std::span<const float>> values;
      for (const GradientSums::Id id : ids) values.emplace_back(values_[id]);
      const float share = share_of_norm(sums_, shards_, ids, values, rank);
      sum = first ? share : sum + share;
      first = false;
    }
    return sum;
  }

 private:
  [[nodiscard]] std::vector<float> add_up(GradientSums::Id id) const {
    std::vector<float> sum;
    for (const Rank rank : sums_[id].holders) {
      const auto share = share_of_sum(
          problem_, sums_, id, rank, [&](const Chunk& chunk) -> std::span<const float> {
            return of_copy_[chunk.replica][static_cast<std::size_t>(chunk.stage)];
          });
      if (sum.empty()) {
        sum = share;
      } else {
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += share[i];
      }
    }
    return sum;
  }

  const Problem& problem_;
  const std::vector<Parameters<float>>& of_copy_;
  const GradientSums sums_;
  const Shards shards_;
  std::vector<std::vector<float>> values_;  // [sum]
};

}  // namespace

float Sgd::factor(float squares) const {
  const float norm = std::sqrt(squares);
  return norm > clip ? clip / norm : 1;
}

void Sgd::step(std::span<float> parameters, std::span<const float> gradient, float factor) const {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    parameters[i] -= rate * factor * gradient[i];
  }
}

void Sgd::step(std::span<float> parameters, std::span<const float> gradient, float factor,
               std::span<const Segment> where) const {
  for (const Segment& s : where) {
    step(parameters.subspan(s.first, s.count), gradient.subspan(s.first, s.count), factor);
  }
}

float share_of_norm(const GradientSums& sums, const Shards& shards,
                    std::span<const GradientSums::Id> ids,
                    std::span<const std::span<const float>> values, Rank rank) {
  float squares = 0;
  for (std::size_t k = 0; k < ids.size(); ++k) {
    const GradientSums::Sum& sum = sums[ids[k]];
    if (!sum.is_scattered && sum.holders.front() != rank) continue;
    const Segment own = shards.reduced(ids[k], rank);
    for (const float value : values[k].subspan(own.first, own.count)) squares += value * value;
  }
  return squares;
}

Trained single_process_training(const Model<float>& model, const Problem& problem, const Sgd& sgd,
                                int steps, const Poison& poison) {
  Trained trained{{}, initial_parameters(model)};
  for (int step = 0; step < steps; ++step) {
    CopiesResult<float> copies =
        gradients_of_copies(model, problem, trained.parameters, step, poison);
    const Reduced reduced(problem, copies.gradients);
    const Shards& shards = reduced.shards();
    const bool has_norm = problem.optimizer->global_norm;
    const float squares = has_norm ? reduced.squares() : 0;
    SkippedStep skipped{step, has_norm, {}, copies.not_finite};
    trained.last = {std::move(copies.losses), {}};
    for (Stage stage = 0; stage < model.stages(); ++stage) {
      const auto& gradient = trained.last.gradients.emplace_back(reduced.gradient(stage));
      if (gradient.empty()) continue;
      const float factor = has_norm ? sgd.factor(squares) : 1;
      bool skips = false;
      for (const std::vector<Segment>& own : shards.pieces(stage, gradient.size())) {
        if (has_norm ? std::isfinite(squares) : all_finite(gradient, own)) {
          sgd.step(trained.parameters[static_cast<std::size_t>(stage)], gradient, factor, own);
        } else {
          skips = true;
        }
      }
      if (skips) skipped.stages.push_back(stage);
    }
    if (!skipped.stages.empty()) trained.skipped.push_back(std::move(skipped));
  }
  return trained;
}

}  // namespace counterflow::reference
