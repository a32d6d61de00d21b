#include "reference/mlp.h"

#include <cmath>
#include <cstdint>

#include "reference/gelu.h"
#include "reference/numbers.h"

namespace counterflow::reference {

template <typename T>
Mlp<T>::Mlp(std::size_t rows, const std::vector<std::size_t>& widths) : rows_(rows) {
  for (std::size_t k = 0; k + 1 < widths.size(); ++k) {
    Layer layer{{widths[k], widths[k + 1]}, sizes_.parameters, sizes_.saved};
    sizes_.parameters += layer.linear.parameters();
    sizes_.saved += rows * layer.linear.out;
    layer.after_gelu = sizes_.saved;
    if (k + 2 < widths.size()) sizes_.saved += rows * layer.linear.out;
    layers_.push_back(layer);
  }
  sizes_.input = rows * widths.front();
  sizes_.output = rows * widths.back();
}

template <typename T>
typename Mlp<T>::Sizes Mlp<T>::sizes() const {
  return sizes_;
}

template <typename T>
void Mlp<T>::initialise(std::uint64_t seed, std::uint64_t series, std::span<T> parameters) const {
  for (std::size_t k = 0; k < layers_.size(); ++k) {
    // Keeps the size of what flows through about the same.
    const double scale = std::sqrt(3.0 / static_cast<double>(layers_[k].linear.in));
    fill_uniform(of_parameters(parameters, layers_[k]), seed, (series << 16U) + k, scale);
  }
}

template <typename T>
std::span<const T> Mlp<T>::input_of(std::size_t k, std::span<const T> input,
                                    std::span<const T> saved) const {
  if (k == 0) return input;
  const Layer& before = layers_[k - 1];
  return saved.subspan(before.after_gelu, rows_ * before.linear.out);
}

template <typename T>
void Mlp<T>::forward(std::span<const T> parameters, std::span<const T> input, std::span<T> output,
                     std::span<T> saved) const {
  for (std::size_t k = 0; k < layers_.size(); ++k) {
    const Layer& layer = layers_[k];
    const std::span<T> z = before_gelu(saved, layer);
    layer.linear.forward(of_parameters(parameters, layer), input_of(k, input, saved), z);
    const bool last = k + 1 == layers_.size();
    const std::span<T> a = last ? output : saved.subspan(layer.after_gelu, z.size());
    for (std::size_t i = 0; i < z.size(); ++i) a[i] = gelu(z[i]);
  }
}

template <typename T>
void Mlp<T>::input_gradient(std::span<const T> parameters, std::span<const T> /*input*/,
                            std::span<const T> output_gradient, std::span<T> input_gradient,
                            std::span<T> saved) const {
  std::vector<T> gradient(output_gradient.begin(), output_gradient.end());
  for (std::size_t k = layers_.size(); k-- > 0;) {
    const Layer& layer = layers_[k];
    const std::span<T> z = before_gelu(saved, layer);
    for (std::size_t i = 0; i < z.size(); ++i) z[i] = gradient[i] * gelu_derivative(z[i]);
    if (k == 0 && input_gradient.empty()) return;
    gradient.resize(rows_ * layer.linear.in);
    layer.linear.input_gradient(of_parameters(parameters, layer), z, gradient);
  }
  std::copy(gradient.begin(), gradient.end(), input_gradient.begin());
}

template <typename T>
void Mlp<T>::weight_gradient(std::span<const T> input, std::span<const T> saved,
                             std::span<T> gradients) const {
  for (std::size_t k = 0; k < layers_.size(); ++k) {
    const Layer& layer = layers_[k];
    layer.linear.weight_gradient(input_of(k, input, saved), before_gelu(saved, layer),
                                 of_parameters(gradients, layer));
  }
}

template class Mlp<float>;
template class Mlp<double>;

}  // namespace counterflow::reference
