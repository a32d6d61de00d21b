#include "reference/model.h"

#include <algorithm>
#include <utility>

#include "reference/mlp.h"
#include "reference/numbers.h"

namespace counterflow::reference {
namespace {

// Series of the random numbers, each with a stage or a microbatch below.
enum class Series : std::uint64_t { weights = 1, inputs = 2, targets = 3 };

std::uint64_t series(Series kind, std::uint64_t a, std::uint64_t b = 0) {
  return (static_cast<std::uint64_t>(kind) << 60U) | (a << 30U) | b;
}

template <typename T>
void add(std::span<const T> term, std::vector<T>& sum) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += term[i];
}

}  // namespace

template <typename T>
Model<T>::Model(const Problem& problem, Layers layers, std::uint64_t seed)
    : graph_(problem.graph), layers_(std::move(layers)), seed_(seed) {
  if (problem.optimizer) tied_ = problem.optimizer->tied;
  int trained = 0;
  for (Microbatch mb = 0; mb < problem.microbatches; ++mb) trained += problem.trains(mb) ? 1 : 0;
  for (Microbatch mb = 0; mb < problem.microbatches; ++mb) {
    weights_.push_back(problem.trains(mb) ? T{1} / static_cast<T>(trained) : T{0});
  }
}

template <typename T>
std::size_t Model<T>::saved(Stage stage) const {
  return of(stage).sizes().saved + (has_loss(stage) ? output(stage) : 0);
}

template <typename T>
std::vector<T> Model<T>::untied_parameters(Stage stage) const {
  std::vector<T> values(parameters(stage));
  of(stage).initialise(seed_, static_cast<std::uint64_t>(stage), values);
  return values;
}

template <typename T>
std::vector<T> Model<T>::initial_parameters(Stage stage) const {
  std::vector<T> values = untied_parameters(stage);
  for (const TiedParameters& tied : tied_) {
    if (std::ranges::find(tied.stages, stage) == tied.stages.end()) continue;
    const std::vector<T> first = untied_parameters(tied.stages.front());
    // Sizes are those of FP32.
    const auto count = tied.size.value / static_cast<std::ptrdiff_t>(sizeof(float));
    std::copy(first.end() - count, first.end(), values.end() - count);
  }
  return values;
}

template <typename T>
std::vector<T> Model<T>::input(const Op& op, const Operands<T>& operands) const {
  std::vector<T> sum(of(op.stage).sizes().input);
  if (operands.inputs.empty()) {
    const auto microbatch = static_cast<std::uint64_t>(op.microbatch);
    fill_uniform(std::span(sum), seed_, series(Series::inputs, op.stage, microbatch), 1);
    return sum;
  }
  std::ranges::copy(operands.inputs.front(), sum.begin());
  for (std::size_t k = 1; k < operands.inputs.size(); ++k) add(operands.inputs[k], sum);
  return sum;
}

template <typename T>
std::vector<T> Model<T>::output_gradient(const Op& op, const Operands<T>& operands) const {
  const auto first = has_loss(op.stage) ? std::span<const T>(operands.saved).last(output(op.stage))
                                        : operands.output_gradients.front();
  std::vector<T> sum(first.begin(), first.end());
  for (std::size_t k = 1; k < operands.output_gradients.size(); ++k) {
    add(operands.output_gradients[k], sum);
  }
  return sum;
}

template <typename T>
T Model<T>::loss(const Op& op, std::span<const T> output, std::span<T> gradient) const {
  const auto microbatch = static_cast<std::uint64_t>(op.microbatch);
  const auto count = static_cast<T>(output.size());
  T sum = 0;
  for (std::size_t i = 0; i < output.size(); ++i) {
    const auto target =
        static_cast<T>(uniform(seed_, series(Series::targets, op.stage, microbatch), i));
    const T distance = output[i] - target;
    sum += distance * distance;
    gradient[i] = distance / count * weights_[static_cast<std::size_t>(op.microbatch)];
  }
  return sum / (2 * count);
}

template <typename T>
T Model<T>::forward(const Op& op, std::span<const T> parameters,
                    const Operands<T>& operands) const {
  std::vector<T> result(output(op.stage));
  of(op.stage).forward(parameters, input(op, operands), result, layers_share(op, operands.saved));
  for (const std::span<T> output : operands.outputs) std::ranges::copy(result, output.begin());
  if (!has_loss(op.stage)) return 0;
  return loss(op, result, operands.saved.last(result.size()));
}

template <typename T>
void Model<T>::input_gradient(const Op& op, std::span<const T> parameters,
                              const Operands<T>& operands) const {
  std::vector<T> result(operands.outputs.empty() ? 0 : of(op.stage).sizes().input);
  of(op.stage).input_gradient(parameters, input(op, operands), output_gradient(op, operands),
                              result, layers_share(op, operands.saved));
  for (const std::span<T> output : operands.outputs) std::ranges::copy(result, output.begin());
}

template <typename T>
void Model<T>::weight_gradient(const Op& op, const Operands<T>& operands,
                               std::span<T> gradients) const {
  of(op.stage).weight_gradient(input(op, operands), layers_share(op, operands.saved), gradients);
}

template <typename T>
Model<T> mlp_model(const Problem& problem, const MlpShape& shape, std::uint64_t seed) {
  std::vector<std::size_t> widths{shape.width};
  widths.insert(widths.end(), shape.layers - 1, shape.hidden);
  widths.push_back(shape.width);
  typename Model<T>::Layers layers;
  for (Stage stage = 0; stage < problem.stages(); ++stage) {
    layers.push_back(std::make_unique<Mlp<T>>(shape.rows, widths));
  }
  return Model<T>(problem, std::move(layers), seed);
}

template class Model<float>;
template class Model<double>;
template Model<float> mlp_model(const Problem&, const MlpShape&, std::uint64_t);
template Model<double> mlp_model(const Problem&, const MlpShape&, std::uint64_t);

}  // namespace counterflow::reference
