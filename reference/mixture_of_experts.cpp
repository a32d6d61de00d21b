#include "reference/mixture_of_experts.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "reference/gelu.h"
#include "reference/numbers.h"
#include "reference/rms_norm.h"

namespace counterflow::reference {

template <typename T>
MixtureOfExperts<T>::MixtureOfExperts(const MoeShape& shape, EpBackend<T>& group)
    : shape_(shape),
      group_(group),
      router_{shape.width, shape.experts},
      up_{shape.width, shape.hidden},
      down_{shape.hidden, shape.width} {
  if (shape.experts % group.members() != 0 || shape.top > shape.experts) {
    throw std::invalid_argument(
        "the number of experts must be a multiple of the members and at least `top`");
  }
  Layout parameters;
  w_router_ = parameters.take(router_.parameters());
  for (std::size_t e = 0; e < experts_here(); ++e) {
    w_up_.push_back(parameters.take(up_.parameters()));
    w_down_.push_back(parameters.take(down_.parameters()));
  }
  const std::size_t sent = shape.rows() * shape.top;
  const std::size_t room = sent * group.members();
  Layout saved;
  choices_ = saved.take(sent);
  weights_ = saved.take(sent);
  results_ = saved.take(sent * shape.width);
  d_logits_ = saved.take(shape.rows() * shape.experts);
  counts_ = saved.take(shape.experts);
  arrived_ = saved.take(room * shape.width);
  before_gelu_ = saved.take(room * shape.hidden);
  after_gelu_ = saved.take(room * shape.hidden);
  d_results_ = saved.take(room * shape.width);
  const std::size_t size = shape.rows() * shape.width;
  sizes_ = {size, size, saved.size(), parameters.size()};
}

template <typename T>
void MixtureOfExperts<T>::initialise(std::uint64_t seed, std::uint64_t series,
                                     std::span<T> parameters) const {
  const double scale = std::sqrt(3.0 / static_cast<double>(shape_.width));
  fill_uniform(w_router_.of(parameters), seed, series << 16U, scale);
  for (std::size_t e = 0; e < experts_here(); ++e) {
    // By the expert's number among all: the same wherever it lives.
    const std::uint64_t expert = group_.member() * experts_here() + e + 1;
    fill_uniform(w_up_[e].of(parameters), seed, (series << 16U) + 2 * expert, scale);
    fill_uniform(w_down_[e].of(parameters), seed, (series << 16U) + 2 * expert + 1,
                 std::sqrt(3.0 / static_cast<double>(shape_.hidden)));
  }
}

template <typename T>
void MixtureOfExperts<T>::route(std::span<const T> logits, std::span<T> saved) const {
  std::vector<std::size_t> order(shape_.experts);
  for (std::size_t row = 0; row < shape_.rows(); ++row) {
    const auto of_row = logits.subspan(row * shape_.experts, shape_.experts);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order,
                             [&](std::size_t a, std::size_t b) { return of_row[a] > of_row[b]; });
    const auto choices = choices_.of(saved).subspan(row * shape_.top, shape_.top);
    const auto weights = weights_.of(saved).subspan(row * shape_.top, shape_.top);
    T sum = 0;
    for (std::size_t k = 0; k < shape_.top; ++k) {
      choices[k] = static_cast<T>(order[k]);
      sum += weights[k] = std::exp(of_row[order[k]] - of_row[order[0]]);
    }
    for (T& weight : weights) weight /= sum;
  }
}

template <typename T>
typename MixtureOfExperts<T>::Routing MixtureOfExperts<T>::routing(std::span<const T> saved) const {
  Routing routing{{}, std::vector<std::size_t>(shape_.experts)};
  const auto choices = choices_.of(saved);
  for (const T choice : choices) ++routing.counts[static_cast<std::size_t>(choice)];
  std::vector<std::size_t> next(shape_.experts);
  std::exclusive_scan(routing.counts.begin(), routing.counts.end(), next.begin(), std::size_t{0});
  for (const T choice : choices) routing.place.push_back(next[static_cast<std::size_t>(choice)]++);
  return routing;
}

template <typename T>
typename MixtureOfExperts<T>::Arrivals MixtureOfExperts<T>::exchange_counts(
    const Routing& routing) const {
  typename EpBackend<T>::Parts parts(group_.members());
  for (std::size_t e = 0; e < shape_.experts; ++e) {
    parts[e / experts_here()].push_back(static_cast<T>(routing.counts[e]));
  }
  Arrivals arrivals;
  for (const auto& part : group_.exchange(std::move(parts))) {
    arrivals.emplace_back(part.begin(), part.end());
  }
  return arrivals;
}

template <typename T>
typename MixtureOfExperts<T>::Arrivals MixtureOfExperts<T>::arrivals(
    std::span<const T> saved) const {
  Arrivals arrivals(group_.members());
  auto count = counts_.of(saved).begin();
  for (auto& from : arrivals) {
    for (std::size_t e = 0; e < experts_here(); ++e)
      from.push_back(static_cast<std::size_t>(*count++));
  }
  return arrivals;
}

template <typename T>
std::vector<T> MixtureOfExperts<T>::dispatch(std::span<const T> by_expert, const Routing& routing,
                                             const Arrivals& arrivals) const {
  typename EpBackend<T>::Parts parts(group_.members());
  auto at = by_expert.begin();
  for (std::size_t e = 0; e < shape_.experts; ++e) {
    const auto end = at + static_cast<std::ptrdiff_t>(routing.counts[e] * shape_.width);
    auto& part = parts[e / experts_here()];
    part.insert(part.end(), at, end);
    at = end;
  }
  const auto received = group_.exchange(std::move(parts));
  std::vector<std::size_t> taken(received.size());
  std::vector<T> here;
  for (std::size_t e = 0; e < experts_here(); ++e) {
    for (std::size_t from = 0; from < received.size(); ++from) {
      const std::size_t count = arrivals[from][e] * shape_.width;
      const auto first = received[from].begin() + static_cast<std::ptrdiff_t>(taken[from]);
      here.insert(here.end(), first, first + static_cast<std::ptrdiff_t>(count));
      taken[from] += count;
    }
  }
  return here;
}

template <typename T>
std::vector<T> MixtureOfExperts<T>::combine(std::span<const T> here,
                                            const Arrivals& arrivals) const {
  typename EpBackend<T>::Parts parts(group_.members());
  auto at = here.begin();
  for (std::size_t e = 0; e < experts_here(); ++e) {
    for (std::size_t to = 0; to < parts.size(); ++to) {
      const auto end = at + static_cast<std::ptrdiff_t>(arrivals[to][e] * shape_.width);
      parts[to].insert(parts[to].end(), at, end);
      at = end;
    }
  }
  std::vector<T> by_expert;
  for (const auto& part : group_.exchange(std::move(parts))) {
    by_expert.insert(by_expert.end(), part.begin(), part.end());
  }
  return by_expert;
}

template <typename T>
template <typename Visit>
void MixtureOfExperts<T>::for_each_expert(const Arrivals& arrivals, Visit visit) const {
  std::size_t first = 0;
  for (std::size_t e = 0; e < experts_here(); ++e) {
    std::size_t rows = 0;
    for (const auto& from : arrivals) rows += from[e];
    visit(e, first, rows);
    first += rows;
  }
}

template <typename T>
void MixtureOfExperts<T>::forward(std::span<const T> parameters, std::span<const T> input,
                                  std::span<T> output, std::span<T> saved) const {
  const std::size_t width = shape_.width;
  std::vector<T> normal(input.size());
  rms_norm<T>(width, input, normal);
  std::vector<T> logits(shape_.rows() * shape_.experts);
  router_.forward(w_router_.of(parameters), normal, logits);
  route(logits, saved);
  const Routing there = routing(saved);
  const Arrivals from = exchange_counts(there);
  auto count = counts_.of(saved).begin();
  for (const auto& of_member : from) {
    for (const std::size_t rows : of_member) *count++ = static_cast<T>(rows);
  }
  std::vector<T> by_expert(there.place.size() * width);
  for (std::size_t k = 0; k < there.place.size(); ++k) {
    std::copy_n(normal.begin() + static_cast<std::ptrdiff_t>(k / shape_.top * width), width,
                by_expert.begin() + static_cast<std::ptrdiff_t>(there.place[k] * width));
  }
  const std::vector<T> arrived = dispatch(by_expert, there, from);
  std::ranges::copy(arrived, arrived_.of(saved).begin());
  std::vector<T> results(arrived.size());
  for_each_expert(from, [&](std::size_t e, std::size_t first, std::size_t rows) {
    const auto z = rows_of(before_gelu_.of(saved), first, rows, shape_.hidden);
    const auto a = rows_of(after_gelu_.of(saved), first, rows, shape_.hidden);
    up_.forward(w_up_[e].of(parameters), rows_of(arrived_.of(saved), first, rows, width), z);
    for (std::size_t i = 0; i < z.size(); ++i) a[i] = gelu(z[i]);
    down_.forward(w_down_[e].of(parameters), a, rows_of(std::span(results), first, rows, width));
  });
  std::ranges::copy(combine(results, from), results_.of(saved).begin());
  std::ranges::copy(input, output.begin());
  for (std::size_t k = 0; k < there.place.size(); ++k) {
    const auto result = rows_of(results_.of(saved), there.place[k], 1, width);
    const auto row = rows_of(output, k / shape_.top, 1, width);
    for (std::size_t d = 0; d < width; ++d) row[d] += weights_.of(saved)[k] * result[d];
  }
}

template <typename T>
void MixtureOfExperts<T>::input_gradient(std::span<const T> parameters, std::span<const T> input,
                                         std::span<const T> output_gradient,
                                         std::span<T> input_gradient, std::span<T> saved) const {
  const std::size_t width = shape_.width;
  const Routing there = routing(saved);
  const Arrivals from = arrivals(saved);
  // Of the choices' weights, then of the logits; and of what the experts made.
  std::vector<T> by_expert(there.place.size() * width);
  std::ranges::fill(d_logits_.of(saved), T{0});
  for (std::size_t row = 0; row < shape_.rows(); ++row) {
    const auto dy = rows_of(output_gradient, row, 1, width);
    const auto weights = weights_.of(saved).subspan(row * shape_.top, shape_.top);
    std::vector<T> d_weights(shape_.top);
    T mean = 0;
    for (std::size_t k = 0; k < shape_.top; ++k) {
      const std::size_t place = there.place[row * shape_.top + k];
      const auto result = rows_of(results_.of(saved), place, 1, width);
      for (std::size_t d = 0; d < width; ++d) {
        d_weights[k] += dy[d] * result[d];
        by_expert[place * width + d] = dy[d] * weights[k];
      }
      mean += weights[k] * d_weights[k];
    }
    for (std::size_t k = 0; k < shape_.top; ++k) {
      const auto choice = static_cast<std::size_t>(choices_.of(saved)[row * shape_.top + k]);
      d_logits_.of(saved)[row * shape_.experts + choice] = weights[k] * (d_weights[k] - mean);
    }
  }
  const std::vector<T> d_results = dispatch(by_expert, there, from);
  std::ranges::copy(d_results, d_results_.of(saved).begin());
  std::vector<T> d_arrived(d_results.size());
  for_each_expert(from, [&](std::size_t e, std::size_t first, std::size_t rows) {
    const auto z = rows_of(before_gelu_.of(saved), first, rows, shape_.hidden);
    std::vector<T> d_hidden(z.size());
    down_.input_gradient(w_down_[e].of(parameters),
                         rows_of(d_results_.of(saved), first, rows, width), d_hidden);
    for (std::size_t i = 0; i < z.size(); ++i) z[i] = d_hidden[i] * gelu_derivative(z[i]);
    up_.input_gradient(w_up_[e].of(parameters), z,
                       rows_of(std::span(d_arrived), first, rows, width));
  });
  // Everyone takes part in the exchange, whoever wants the gradient.
  const std::vector<T> d_sent = combine(d_arrived, from);
  if (input_gradient.empty()) return;
  std::vector<T> d_normal(input.size());
  router_.input_gradient(w_router_.of(parameters), d_logits_.of(saved), d_normal);
  for (std::size_t k = 0; k < there.place.size(); ++k) {
    const auto row = rows_of(std::span(d_normal), k / shape_.top, 1, width);
    for (std::size_t d = 0; d < width; ++d) row[d] += d_sent[there.place[k] * width + d];
  }
  std::ranges::copy(output_gradient, input_gradient.begin());
  rms_norm_gradient<T>(width, input, d_normal, input_gradient);
}

template <typename T>
void MixtureOfExperts<T>::weight_gradient(std::span<const T> input, std::span<const T> saved,
                                          std::span<T> gradients) const {
  const std::size_t width = shape_.width;
  std::vector<T> normal(input.size());
  rms_norm<T>(width, input, normal);
  const auto router = w_router_.of(gradients);
  for (std::size_t s = 0; s < shape_.sequences; ++s) {
    const std::size_t first = s * shape_.length;
    std::vector<T> of_sequence(router.size());
    router_.weight_gradient(rows_of(std::span<const T>(normal), first, shape_.length, width),
                            rows_of(d_logits_.of(saved), first, shape_.length, shape_.experts),
                            of_sequence);
    for (std::size_t i = 0; i < router.size(); ++i) router[i] += of_sequence[i];
  }
  for_each_expert(arrivals(saved), [&](std::size_t e, std::size_t first, std::size_t rows) {
    up_.weight_gradient(rows_of(arrived_.of(saved), first, rows, width),
                        rows_of(before_gelu_.of(saved), first, rows, shape_.hidden),
                        w_up_[e].of(gradients));
    down_.weight_gradient(rows_of(after_gelu_.of(saved), first, rows, shape_.hidden),
                          rows_of(d_results_.of(saved), first, rows, width),
                          w_down_[e].of(gradients));
  });
}

template class MixtureOfExperts<float>;
template class MixtureOfExperts<double>;

}  // namespace counterflow::reference
