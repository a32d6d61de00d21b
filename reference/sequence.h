#pragma once

#include <memory>
#include <vector>

#include "reference/layout.h"
#include "reference/stage_layers.h"

namespace counterflow::reference {

// Layers one after the other, as one stage: a transformer block is Attention, then an Mlp or a
// MixtureOfExperts. Saves what each saves, and what goes from one to the next.
template <typename T>
class Sequence final : public StageLayers<T> {
 public:
  using typename StageLayers<T>::Sizes;
  using Parts = std::vector<std::unique_ptr<const StageLayers<T>>>;
  // At least one; each takes what the one before gives.
  explicit Sequence(Parts parts);

  [[nodiscard]] Sizes sizes() const override { return sizes_; }
  void initialise(std::uint64_t seed, std::uint64_t series, std::span<T> parameters) const override;
  void forward(std::span<const T> parameters, std::span<const T> input, std::span<T> output,
               std::span<T> saved) const override;
  void input_gradient(std::span<const T> parameters, std::span<const T> input,
                      std::span<const T> output_gradient, std::span<T> input_gradient,
                      std::span<T> saved) const override;
  void weight_gradient(std::span<const T> input, std::span<const T> saved,
                       std::span<T> gradients) const override;

 private:
  struct Place {
    Piece parameters;
    Piece saved;
    Piece output;  // of what is saved; empty of the last
  };
  [[nodiscard]] std::span<const T> input_of(std::size_t k, std::span<const T> input,
                                            std::span<const T> saved) const {
    return k == 0 ? input : places_[k - 1].output.of(saved);
  }

  Parts parts_;
  std::vector<Place> places_;
  Sizes sizes_;
};

extern template class Sequence<float>;
extern template class Sequence<double>;

}  // namespace counterflow::reference
