#pragma once

#include "reference/layout.h"
#include "reference/linear.h"
#include "reference/stage_layers.h"

namespace counterflow::reference {

// x + attention(norm(x)): one causal head of the full width, on sequences of `length` rows.
// W adds up each sequence by itself, then the sequences in order: sequences on other ranks, added
// by rank, come to the same bits if each rank has one.
template <typename T>
class Attention final : public StageLayers<T> {
 public:
  using typename StageLayers<T>::Sizes;
  Attention(std::size_t sequences, std::size_t length, std::size_t width);

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
  // Of one sequence: probabilities and what they mix.
  void attend(std::span<const T> q, std::span<const T> k, std::span<const T> v,
              std::span<T> probabilities, std::span<T> mixed) const;
  // Turns q, k and v into their gradients.
  void attend_gradient(std::span<T> q, std::span<T> k, std::span<T> v,
                       std::span<const T> probabilities, std::span<const T> d_mixed) const;
  template <typename Span>
  Span sequence(Span whole, std::size_t s) const {
    const std::size_t size = whole.size() / sequences_;
    return whole.subspan(s * size, size);
  }

  std::size_t sequences_, length_, width_;
  Linear<T> linear_;                                    // each of the four
  Piece w_q_, w_k_, w_v_, w_out_;                       // of the parameters
  Piece q_, k_, v_, mixed_, probabilities_, d_output_;  // of what is saved
  Sizes sizes_;
};

extern template class Attention<float>;
extern template class Attention<double>;

}  // namespace counterflow::reference
