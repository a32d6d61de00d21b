#include "reference/attention.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "reference/numbers.h"
#include "reference/rms_norm.h"

namespace counterflow::reference {

template <typename T>
Attention<T>::Attention(std::size_t sequences, std::size_t length, std::size_t width)
    : sequences_(sequences), length_(length), width_(width), linear_{width, width} {
  const std::size_t size = sequences * length * width;
  Layout parameters;
  for (Piece* piece : {&w_q_, &w_k_, &w_v_, &w_out_})
    *piece = parameters.take(linear_.parameters());
  Layout saved;
  for (Piece* piece : {&q_, &k_, &v_, &mixed_, &d_output_}) *piece = saved.take(size);
  probabilities_ = saved.take(sequences * length * length);
  sizes_ = {size, size, saved.size(), parameters.size()};
}

template <typename T>
void Attention<T>::initialise(std::uint64_t seed, std::uint64_t series,
                              std::span<T> parameters) const {
  fill_uniform(parameters, seed, series, std::sqrt(3.0 / static_cast<double>(width_)));
}

template <typename T>
void Attention<T>::attend(std::span<const T> q, std::span<const T> k, std::span<const T> v,
                          std::span<T> probabilities, std::span<T> mixed) const {
  const T scale = 1 / std::sqrt(static_cast<T>(width_));
  std::ranges::fill(probabilities, T{0});
  std::ranges::fill(mixed, T{0});
  for (std::size_t i = 0; i < length_; ++i) {
    const auto p = probabilities.subspan(i * length_, length_);
    for (std::size_t j = 0; j <= i; ++j) {
      for (std::size_t d = 0; d < width_; ++d) p[j] += q[i * width_ + d] * k[j * width_ + d];
      p[j] *= scale;
    }
    const T largest = *std::max_element(p.begin(), p.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    T sum = 0;
    for (std::size_t j = 0; j <= i; ++j) sum += p[j] = std::exp(p[j] - largest);
    for (std::size_t j = 0; j <= i; ++j) {
      p[j] /= sum;
      for (std::size_t d = 0; d < width_; ++d) mixed[i * width_ + d] += p[j] * v[j * width_ + d];
    }
  }
}

template <typename T>
void Attention<T>::attend_gradient(std::span<T> q, std::span<T> k, std::span<T> v,
                                   std::span<const T> probabilities,
                                   std::span<const T> d_mixed) const {
  const T scale = 1 / std::sqrt(static_cast<T>(width_));
  std::vector<T> dq(q.size());
  std::vector<T> dk(k.size());
  std::vector<T> dv(v.size());
  std::vector<T> dp(length_);
  for (std::size_t i = 0; i < length_; ++i) {
    const auto p = probabilities.subspan(i * length_, length_);
    T mean = 0;
    for (std::size_t j = 0; j <= i; ++j) {
      dp[j] = 0;
      for (std::size_t d = 0; d < width_; ++d) {
        dp[j] += d_mixed[i * width_ + d] * v[j * width_ + d];
        dv[j * width_ + d] += p[j] * d_mixed[i * width_ + d];
      }
      mean += p[j] * dp[j];
    }
    for (std::size_t j = 0; j <= i; ++j) {
      const T ds = p[j] * (dp[j] - mean) * scale;
      for (std::size_t d = 0; d < width_; ++d) {
        dq[i * width_ + d] += ds * k[j * width_ + d];
        dk[j * width_ + d] += ds * q[i * width_ + d];
      }
    }
  }
  std::ranges::copy(dq, q.begin());
  std::ranges::copy(dk, k.begin());
  std::ranges::copy(dv, v.begin());
}

template <typename T>
void Attention<T>::forward(std::span<const T> parameters, std::span<const T> input,
                           std::span<T> output, std::span<T> saved) const {
  std::vector<T> normal(input.size());
  rms_norm<T>(width_, input, normal);
  linear_.forward(w_q_.of(parameters), normal, q_.of(saved));
  linear_.forward(w_k_.of(parameters), normal, k_.of(saved));
  linear_.forward(w_v_.of(parameters), normal, v_.of(saved));
  for (std::size_t s = 0; s < sequences_; ++s) {
    attend(sequence(q_.of(saved), s), sequence(k_.of(saved), s), sequence(v_.of(saved), s),
           sequence(probabilities_.of(saved), s), sequence(mixed_.of(saved), s));
  }
  linear_.forward(w_out_.of(parameters), mixed_.of(saved), output);
  for (std::size_t i = 0; i < output.size(); ++i) output[i] += input[i];
}

template <typename T>
void Attention<T>::input_gradient(std::span<const T> parameters, std::span<const T> input,
                                  std::span<const T> output_gradient, std::span<T> input_gradient,
                                  std::span<T> saved) const {
  std::ranges::copy(output_gradient, d_output_.of(saved).begin());
  std::vector<T> d_mixed(input.size());
  linear_.input_gradient(w_out_.of(parameters), output_gradient, d_mixed);
  for (std::size_t s = 0; s < sequences_; ++s) {
    attend_gradient(sequence(q_.of(saved), s), sequence(k_.of(saved), s), sequence(v_.of(saved), s),
                    sequence(probabilities_.of(saved), s),
                    sequence(std::span<const T>(d_mixed), s));
  }
  if (input_gradient.empty()) return;
  std::vector<T> d_normal(input.size());
  std::vector<T> part(input.size());
  for (const auto& [weights, gradient] : {std::pair(w_q_, q_), {w_k_, k_}, {w_v_, v_}}) {
    linear_.input_gradient(weights.of(parameters), gradient.of(saved), part);
    for (std::size_t i = 0; i < part.size(); ++i) d_normal[i] += part[i];
  }
  std::ranges::copy(output_gradient, input_gradient.begin());
  rms_norm_gradient<T>(width_, input, d_normal, input_gradient);
}

template <typename T>
void Attention<T>::weight_gradient(std::span<const T> input, std::span<const T> saved,
                                   std::span<T> gradients) const {
  std::vector<T> normal(input.size());
  rms_norm<T>(width_, input, normal);
  for (std::size_t s = 0; s < sequences_; ++s) {
    std::vector<T> of_sequence(gradients.size());
    const std::span<T> target(of_sequence);
    const auto x = sequence(std::span<const T>(normal), s);
    for (const auto& [weights, gradient] : {std::pair(w_q_, q_), {w_k_, k_}, {w_v_, v_}}) {
      linear_.weight_gradient(x, sequence(gradient.of(saved), s), weights.of(target));
    }
    linear_.weight_gradient(sequence(mixed_.of(saved), s), sequence(d_output_.of(saved), s),
                            w_out_.of(target));
    for (std::size_t i = 0; i < gradients.size(); ++i) gradients[i] += of_sequence[i];
  }
}

template class Attention<float>;
template class Attention<double>;

}  // namespace counterflow::reference
