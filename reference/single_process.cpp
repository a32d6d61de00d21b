#include "reference/single_process.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "executor/codec.h"

namespace counterflow::reference {
namespace {

template <typename T>
class Step {
 public:
  Step(const Model<T>& model, const Problem& problem, const Parameters<T>& parameters, int step,
       const Poison& poison)
      : model_(model),
        problem_(problem),
        parameters_(parameters),
        step_(step),
        poison_(poison),
        stages_(parameters.size()) {
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      stages_[s].output.resize(model.output(static_cast<Stage>(s)));
      stages_[s].saved.resize(model.saved(static_cast<Stage>(s)));
    }
  }

  CopiesResult<T> run() {
    CopiesResult<T> result;
    result.losses.resize(static_cast<std::size_t>(problem_.microbatches));
    result.gradients.resize(static_cast<std::size_t>(problem_.placement.replicas()),
                            zero_gradients());
    for (Microbatch mb = 0; mb < problem_.microbatches; ++mb) {
      result.losses[static_cast<std::size_t>(mb)] = forward(mb);
      if (!problem_.trains(mb)) continue;
      const Parameters<T> gradients = backward(mb);
      if (!result.not_finite) result.not_finite = first_not_finite(mb, gradients);
      add(gradients, result.gradients[static_cast<std::size_t>(problem_.replica_of(mb))]);
    }
    return result;
  }

  static void add(const Parameters<T>& terms, Parameters<T>& sums) {
    for (std::size_t s = 0; s < sums.size(); ++s) {
      for (std::size_t i = 0; i < sums[s].size(); ++i) sums[s][i] += terms[s][i];
    }
  }

 private:
  struct StageState {
    std::vector<T> output;
    std::vector<T> saved;
    std::vector<T> input_gradient;
    // The two as another rank has them; empty where they travel as they are.
    std::vector<T> sent_output, sent_gradient;
  };

  // What comes out of packing and unpacking, nothing if the type does not pack.
  static std::vector<T> sent(DataType type, const std::vector<T>& values) {
    if (!is_packed(type)) return {};
    std::vector<float> elements(values.begin(), values.end());
    exec::pass_through(type, elements);
    return {elements.begin(), elements.end()};
  }

  [[nodiscard]] bool crosses_ranks(Stage from, Stage to, Microbatch mb) const {
    const int replica = problem_.replica_of(mb);
    return problem_.placement.rank_of(from, replica) != problem_.placement.rank_of(to, replica);
  }

  Parameters<T> zero_gradients() const {
    Parameters<T> gradients(stages_.size());
    for (std::size_t s = 0; s < gradients.size(); ++s) {
      if (problem_.needs_backward_weight(static_cast<Stage>(s))) {
        gradients[s].resize(parameters_[s].size());
      }
    }
    return gradients;
  }

  [[nodiscard]] std::optional<NotFinite> first_not_finite(Microbatch mb,
                                                          const Parameters<T>& gradients) const {
    for (Stage stage = model_.stages(); stage-- > 0;) {
      const auto& gradient = gradients[static_cast<std::size_t>(stage)];
      if (std::ranges::all_of(gradient, [](T value) { return std::isfinite(value); })) continue;
      return NotFinite{stage, mb, problem_.placement.rank_of(stage, problem_.replica_of(mb))};
    }
    return std::nullopt;
  }

  [[nodiscard]] Op op(Stage stage, Microbatch mb) const {
    return {OpKind::none, static_cast<std::uint8_t>(problem_.replica_of(mb)),
            static_cast<std::uint16_t>(stage), mb};
  }

  [[nodiscard]] Operands<T> operands(Stage stage, Microbatch mb) {
    Operands<T> found;
    for (const Stage from : problem_.graph.predecessors(stage)) {
      const StageState& state = stages_[static_cast<std::size_t>(from)];
      const bool changed = !state.sent_output.empty() && crosses_ranks(from, stage, mb);
      found.inputs.emplace_back(changed ? state.sent_output : state.output);
    }
    for (const Stage to : problem_.graph.successors(stage)) {
      const StageState& state = stages_[static_cast<std::size_t>(to)];
      const bool changed = !state.sent_gradient.empty() && crosses_ranks(to, stage, mb);
      found.output_gradients.emplace_back(changed ? state.sent_gradient : state.input_gradient);
    }
    found.saved = stages_[static_cast<std::size_t>(stage)].saved;
    return found;
  }

  T forward(Microbatch mb) {
    T loss = 0;
    for (Stage stage = 0; stage < model_.stages(); ++stage) {
      StageState& state = stages_[static_cast<std::size_t>(stage)];
      Operands<T> found = operands(stage, mb);
      found.outputs.emplace_back(state.output);
      loss += model_.forward(op(stage, mb), parameters_[static_cast<std::size_t>(stage)], found);
      poison_.forward(step_, model_, op(stage, mb), found);
      state.sent_output = sent(problem_.compression.activations, state.output);
    }
    return loss;
  }

  Parameters<T> backward(Microbatch mb) {
    Parameters<T> gradients = zero_gradients();
    for (Stage stage = model_.stages(); stage-- > 0;) {
      if (!problem_.needs_backward_input(stage)) continue;
      const auto s = static_cast<std::size_t>(stage);
      Operands<T> found = operands(stage, mb);
      // As large as what flowed forward.
      std::vector<T>& result = stages_[s].input_gradient;
      if (!found.inputs.empty()) {
        result.resize(found.inputs.front().size());
        found.outputs.emplace_back(result);
      }
      model_.input_gradient(op(stage, mb), parameters_[s], found);
      poison_.input_gradient(step_, op(stage, mb), found);
      stages_[s].sent_gradient = sent(problem_.compression.gradients, result);
      if (gradients[s].empty()) continue;
      model_.weight_gradient(op(stage, mb), found, gradients[s]);
      poison_.weight_gradient(step_, op(stage, mb), std::span(gradients[s]));
    }
    return gradients;
  }

  const Model<T>& model_;
  const Problem& problem_;
  const Parameters<T>& parameters_;
  const int step_;
  const Poison& poison_;
  std::vector<StageState> stages_;  // of the microbatch at hand
};

}  // namespace

template <typename T>
Parameters<T> initial_parameters(const Model<T>& model) {
  Parameters<T> all;
  for (Stage stage = 0; stage < model.stages(); ++stage) {
    all.push_back(model.initial_parameters(stage));
  }
  return all;
}

template <typename T>
CopiesResult<T> gradients_of_copies(const Model<T>& model, const Problem& problem,
                                    const Parameters<T>& parameters, int step,
                                    const Poison& poison) {
  return Step<T>(model, problem, parameters, step, poison).run();
}

template <typename T>
StepResult<T> single_process_step(const Model<T>& model, const Problem& problem,
                                  const Parameters<T>& parameters) {
  CopiesResult<T> copies = gradients_of_copies(model, problem, parameters);
  StepResult<T> result{std::move(copies.losses), std::move(copies.gradients.front())};
  for (std::size_t c = 1; c < copies.gradients.size(); ++c) {
    Step<T>::add(copies.gradients[c], result.gradients);
  }
  return result;
}

template Parameters<float> initial_parameters(const Model<float>&);
template Parameters<double> initial_parameters(const Model<double>&);
template StepResult<float> single_process_step(const Model<float>&, const Problem&,
                                               const Parameters<float>&);
template CopiesResult<float> gradients_of_copies(const Model<float>&, const Problem&,
                                                 const Parameters<float>&, int, const Poison&);
template StepResult<double> single_process_step(const Model<double>&, const Problem&,
                                                const Parameters<double>&);

}  // namespace counterflow::reference
