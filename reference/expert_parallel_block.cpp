#include "reference/expert_parallel_block.h"

#include <algorithm>
#include <stdexcept>
#include <thread>
#include <utility>

#include "reference/attention.h"
#include "reference/ep_threads.h"

namespace counterflow::reference {

template <typename T>
Sequence<T> transformer_block(const MoeShape& shape, EpBackend<T>& group) {
  typename Sequence<T>::Parts parts;
  parts.push_back(std::make_unique<Attention<T>>(shape.sequences, shape.length, shape.width));
  parts.push_back(std::make_unique<MixtureOfExperts<T>>(shape, group));
  return Sequence<T>(std::move(parts));
}

template <typename T>
ExpertParallelBlock<T>::ExpertParallelBlock(const MoeShape& shape, std::size_t members)
    : share_(shape), members_(members) {
  if (members == 0 || shape.sequences % members != 0) {
    throw std::invalid_argument("sequences must be shared out evenly among the members");
  }
  share_.sequences /= members;
  EpThreadGroup<T> group(members);
  EpThread<T> member(group, 0);
  const Sizes one = transformer_block<T>(share_, member).sizes();
  shared_ = Attention<T>(share_.sequences, share_.length, share_.width).sizes().parameters +
            MixtureOfExperts<T>(share_, member).shared_parameters();
  experts_ = one.parameters - shared_;
  sizes_ = {.input = one.input * members,
            .output = one.output * members,
            .saved = one.saved * members,
            .parameters = shared_ + experts_ * members};
}

template <typename T>
template <typename Work>
void ExpertParallelBlock<T>::together(Work work) const {
  EpThreadGroup<T> group(members_);
  const auto one = [&](std::size_t m) {
    EpThread<T> member(group, m);
    work(m, transformer_block<T>(share_, member));
  };
  std::vector<std::jthread> others;
  for (std::size_t m = 1; m < members_; ++m) others.emplace_back(one, m);
  one(0);
}

template <typename T>
std::vector<T> ExpertParallelBlock<T>::parameters_of(std::span<const T> whole,
                                                     std::size_t member) const {
  std::vector<T> own(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(shared_));
  const auto experts = part(whole.subspan(shared_), member);
  own.insert(own.end(), experts.begin(), experts.end());
  return own;
}

template <typename T>
void ExpertParallelBlock<T>::initialise(std::uint64_t seed, std::uint64_t series,
                                        std::span<T> parameters) const {
  MoeShape whole = share_;
  whole.sequences *= members_;
  NoExpertParallelism<T> alone;
  transformer_block<T>(whole, alone).initialise(seed, series, parameters);
}

template <typename T>
void ExpertParallelBlock<T>::forward(std::span<const T> parameters, std::span<const T> input,
                                     std::span<T> output, std::span<T> saved) const {
  together([&](std::size_t m, const Sequence<T>& block) {
    block.forward(parameters_of(parameters, m), part(input, m), part(output, m), part(saved, m));
  });
}

template <typename T>
void ExpertParallelBlock<T>::input_gradient(std::span<const T> parameters, std::span<const T> input,
                                            std::span<const T> output_gradient,
                                            std::span<T> input_gradient, std::span<T> saved) const {
  together([&](std::size_t m, const Sequence<T>& block) {
    block.input_gradient(parameters_of(parameters, m), part(input, m), part(output_gradient, m),
                         part(input_gradient, m), part(saved, m));
  });
}

template <typename T>
void ExpertParallelBlock<T>::weight_gradient(std::span<const T> input, std::span<const T> saved,
                                             std::span<T> gradients) const {
  std::vector<std::vector<T>> of_member(members_, std::vector<T>(shared_ + experts_));
  together([&](std::size_t m, const Sequence<T>& block) {
    block.weight_gradient(part(input, m), part(saved, m), of_member[m]);
  });
  // What all have is added up by member, then to what is there.
  std::vector<T>& sum = of_member.front();
  for (std::size_t m = 1; m < members_; ++m) {
    for (std::size_t i = 0; i < shared_; ++i) sum[i] += of_member[m][i];
  }
  for (std::size_t i = 0; i < shared_; ++i) gradients[i] += sum[i];
  for (std::size_t m = 0; m < members_; ++m) {
    const auto experts = part(gradients.subspan(shared_), m);
    for (std::size_t i = 0; i < experts_; ++i) experts[i] += of_member[m][shared_ + i];
  }
}

template <typename T>
Model<T> moe_model(const Problem& problem, const MoeShape& shape, std::size_t members,
                   std::uint64_t seed) {
  typename Model<T>::Layers layers;
  for (Stage stage = 0; stage < problem.stages(); ++stage) {
    layers.push_back(std::make_unique<ExpertParallelBlock<T>>(shape, members));
  }
  return Model<T>(problem, std::move(layers), seed);
}

template Sequence<float> transformer_block(const MoeShape&, EpBackend<float>&);
template Sequence<double> transformer_block(const MoeShape&, EpBackend<double>&);
template class ExpertParallelBlock<float>;
template class ExpertParallelBlock<double>;
template Model<float> moe_model(const Problem&, const MoeShape&, std::size_t, std::uint64_t);

}  // namespace counterflow::reference
