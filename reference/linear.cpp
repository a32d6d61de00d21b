#include "reference/linear.h"

namespace counterflow::reference {

template <typename T>
void Linear<T>::forward(std::span<const T> parameters, std::span<const T> x, std::span<T> y) const {
  const auto bias = parameters.subspan(out * in);
  const std::size_t rows = x.size() / in;
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t o = 0; o < out; ++o) {
      T sum = bias[o];
      for (std::size_t i = 0; i < in; ++i) sum += x[r * in + i] * parameters[o * in + i];
      y[r * out + o] = sum;
    }
  }
}

template <typename T>
void Linear<T>::input_gradient(std::span<const T> parameters, std::span<const T> dy,
                               std::span<T> dx) const {
  const std::size_t rows = dy.size() / out;
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t i = 0; i < in; ++i) {
      T sum = 0;
      for (std::size_t o = 0; o < out; ++o) sum += dy[r * out + o] * parameters[o * in + i];
      dx[r * in + i] = sum;
    }
  }
}

template <typename T>
void Linear<T>::weight_gradient(std::span<const T> x, std::span<const T> dy,
                                std::span<T> gradients) const {
  const auto bias = gradients.subspan(out * in);
  const std::size_t rows = x.size() / in;
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t o = 0; o < out; ++o) {
      const T d = dy[r * out + o];
      for (std::size_t i = 0; i < in; ++i) gradients[o * in + i] += d * x[r * in + i];
      bias[o] += d;
    }
  }
}

template struct Linear<float>;
template struct Linear<double>;

}  // namespace counterflow::reference
