#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace counterflow::reference {

// What one stage computes on one microbatch, as functions of flat buffers: no state, so any thread
// may call, and the same bits come out wherever it runs. A full backward is input_gradient, then
// weight_gradient.
template <typename T>
class StageLayers {
 public:
  struct Sizes {  // in elements
    std::size_t input = 0;
    std::size_t output = 0;
    std::size_t saved = 0;  // what F leaves for I, and I in its place for W
    std::size_t parameters = 0;
  };

  virtual ~StageLayers() = default;
  [[nodiscard]] virtual Sizes sizes() const = 0;
  // The first weights: the same for the same seed and series.
  virtual void initialise(std::uint64_t seed, std::uint64_t series,
                          std::span<T> parameters) const = 0;

  virtual void forward(std::span<const T> parameters, std::span<const T> input, std::span<T> output,
                       std::span<T> saved) const = 0;
  // Writes the gradient of the input, unless nobody wants it (it is empty), and turns `saved` into
  // what weight_gradient needs.
  virtual void input_gradient(std::span<const T> parameters, std::span<const T> input,
                              std::span<const T> output_gradient, std::span<T> input_gradient,
                              std::span<T> saved) const = 0;
  // Adds the gradient of the parameters.
  virtual void weight_gradient(std::span<const T> input, std::span<const T> saved,
                               std::span<T> gradients) const = 0;
};

}  // namespace counterflow::reference
