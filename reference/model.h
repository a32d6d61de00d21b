#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "reference/stage_layers.h"
#include "scheduler/problem/problem.h"

namespace counterflow::reference {

// The buffers of one op of one stage, as exec::OpBuffers has them, in elements.
template <typename T>
struct Operands {
  std::vector<std::span<const T>> inputs;
  std::vector<std::span<const T>> output_gradients;
  std::vector<std::span<T>> outputs;  // F: activations; I: input gradients; all the same
  std::span<T> saved;
};

// A model cut into the stages of a problem, with its data and its loss: what every op computes, a
// pure function of weights and operands. What several stages feed a stage is added up, in their
// order. Stages that nothing feeds take the microbatch's data, made from the seed; those that feed
// nothing end in the loss: half the mean squared distance from targets, also made from the seed.
// A step's loss is the mean over the microbatches that train: gradients are scaled so, once, where
// the loss is.
template <typename T>
class Model {
 public:
  using Layers = std::vector<std::unique_ptr<const StageLayers<T>>>;
  // One entry a stage; the output of a stage must be as large as the input of those it feeds.
  Model(const Problem& problem, Layers layers, std::uint64_t seed);

  [[nodiscard]] int stages() const { return static_cast<int>(layers_.size()); }
  [[nodiscard]] std::size_t parameters(Stage stage) const { return of(stage).sizes().parameters; }
  [[nodiscard]] std::size_t output(Stage stage) const { return of(stage).sizes().output; }
  // What F saves, the loss's gradient at a last stage included.
  [[nodiscard]] std::size_t saved(Stage stage) const;
  // Tied parameters stand last in each of their stages; all begin like the first of these.
  [[nodiscard]] std::vector<T> initial_parameters(Stage stage) const;
  [[nodiscard]] bool has_loss(Stage stage) const { return graph_.successors(stage).empty(); }

  // F; returns the loss of the microbatch at a stage that has one, else 0.
  T forward(const Op& op, std::span<const T> parameters, const Operands<T>& operands) const;
  // I, in place: `saved` becomes what W needs.
  void input_gradient(const Op& op, std::span<const T> parameters,
                      const Operands<T>& operands) const;
  // W: adds to `gradients`.
  void weight_gradient(const Op& op, const Operands<T>& operands, std::span<T> gradients) const;

 private:
  [[nodiscard]] const StageLayers<T>& of(Stage stage) const {
    return *layers_[static_cast<std::size_t>(stage)];
  }
  [[nodiscard]] std::vector<T> input(const Op& op, const Operands<T>& operands) const;
  [[nodiscard]] std::vector<T> output_gradient(const Op& op, const Operands<T>& operands) const;
  [[nodiscard]] std::span<T> layers_share(const Op& op, std::span<T> saved) const {
    return saved.first(of(op.stage).sizes().saved);
  }
  // Writes the gradient of the loss.
  [[nodiscard]] T loss(const Op& op, std::span<const T> output, std::span<T> gradient) const;

  [[nodiscard]] std::vector<T> untied_parameters(Stage stage) const;

  StageGraph graph_;
  Layers layers_;
  std::uint64_t seed_;
  std::vector<T> weights_;  // [microbatch] of its loss in the step's
  std::vector<TiedParameters> tied_;
};

extern template class Model<float>;
extern template class Model<double>;

// The problem with messages, what F saves and gradients as large as the model's.
template <typename T>
[[nodiscard]] Problem with_sizes_of(const Model<T>& model, Problem problem) {
  const auto bytes = [](std::size_t count) {
    return Bytes{static_cast<std::int64_t>(count * sizeof(T))};
  };
  for (Stage stage = 0; stage < model.stages(); ++stage) {
    const auto s = static_cast<std::size_t>(stage);
    problem.message[s] = bytes(model.output(stage));
    problem.memory[s] = {bytes(model.saved(stage)), bytes(model.saved(stage))};
    if (!problem.optimizer) continue;
    problem.optimizer->gradients[s] = bytes(model.parameters(stage));
    if (problem.optimizer->validates()) {
      problem.optimizer->snapshot[s] = bytes(model.parameters(stage));
    }
    if (problem.optimizer->sharding) {
      problem.optimizer->sharding->parameters[s] = bytes(model.parameters(stage));
    }
  }
  return problem;
}

// Linear layers with GELU in each stage: `rows` samples a microbatch, `width` numbers between
// stages, `hidden` between the layers of a stage.
struct MlpShape {
  std::size_t rows = 3;
  std::size_t width = 4;
  std::size_t hidden = 6;
  std::size_t layers = 2;  // a stage
};
template <typename T>
[[nodiscard]] Model<T> mlp_model(const Problem& problem, const MlpShape& shape, std::uint64_t seed);

extern template Model<float> mlp_model(const Problem&, const MlpShape&, std::uint64_t);
extern template Model<double> mlp_model(const Problem&, const MlpShape&, std::uint64_t);

}  // namespace counterflow::reference
