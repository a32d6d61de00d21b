#pragma once

#include <vector>

#include "reference/linear.h"
#include "reference/stage_layers.h"

namespace counterflow::reference {

// Linear layers, each followed by GELU, on `rows` rows. Saved are, of each layer, what goes into
// its GELU, in whose place I leaves the gradient of it, and what comes out (of the last it is the
// output, which nobody needs again).
template <typename T>
class Mlp final : public StageLayers<T> {
 public:
  using typename StageLayers<T>::Sizes;
  // One layer between any two neighbouring widths; at least two widths.
  Mlp(std::size_t rows, const std::vector<std::size_t>& widths);

  [[nodiscard]] Sizes sizes() const override;
  void initialise(std::uint64_t seed, std::uint64_t series, std::span<T> parameters) const override;
  void forward(std::span<const T> parameters, std::span<const T> input, std::span<T> output,
               std::span<T> saved) const override;
  void input_gradient(std::span<const T> parameters, std::span<const T> input,
                      std::span<const T> output_gradient, std::span<T> input_gradient,
                      std::span<T> saved) const override;
  void weight_gradient(std::span<const T> input, std::span<const T> saved,
                       std::span<T> gradients) const override;

 private:
  // A layer and where its share begins: of the parameters, and of what is saved.
  struct Layer {
    Linear<T> linear;
    std::size_t parameters = 0;
    std::size_t before_gelu = 0;
    std::size_t after_gelu = 0;
  };
  template <typename Span>
  [[nodiscard]] Span of_parameters(Span all, const Layer& layer) const {
    return all.subspan(layer.parameters, layer.linear.parameters());
  }
  template <typename Span>
  [[nodiscard]] Span before_gelu(Span saved, const Layer& layer) const {
    return saved.subspan(layer.before_gelu, rows_ * layer.linear.out);
  }
  // What goes into layer k.
  [[nodiscard]] std::span<const T> input_of(std::size_t k, std::span<const T> input,
                                            std::span<const T> saved) const;

  std::size_t rows_;
  std::vector<Layer> layers_;
  Sizes sizes_;
};

extern template class Mlp<float>;
extern template class Mlp<double>;

}  // namespace counterflow::reference
