#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "reference/mixture_of_experts.h"
#include "reference/model.h"
#include "reference/sequence.h"
#include "reference/stage_layers.h"

namespace counterflow::reference {

// A transformer block of attention and experts. The group must outlive it.
template <typename T>
[[nodiscard]] Sequence<T> transformer_block(const MoeShape& shape, EpBackend<T>& group);

// The same block as an expert-parallel group computes it: a stage whose rank stands for several
// members, each a thread of an op with its share of the sequences, all attention and router weights
// and its share of the experts; rows go to the experts and back by all-to-all-v. Parameters,
// inputs, outputs and gradients are those of the one block, bit for bit; what is saved is each
// member's own.
template <typename T>
class ExpertParallelBlock final : public StageLayers<T> {
 public:
  using typename StageLayers<T>::Sizes;
  // `shape` is that of the whole group. Throws std::invalid_argument where sequences or experts
  // cannot be shared out evenly.
  ExpertParallelBlock(const MoeShape& shape, std::size_t members);

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
  // Calls work(member, its block) for every member, each on a thread of its own.
  template <typename Work>
  void together(Work work) const;
  // A member's part of what is cut evenly by member; empty of what is empty.
  template <typename Span>
  [[nodiscard]] Span part(Span whole, std::size_t member) const {
    const std::size_t size = whole.size() / members_;
    return whole.subspan(member * size, size);
  }
  [[nodiscard]] std::vector<T> parameters_of(std::span<const T> whole, std::size_t member) const;

  MoeShape share_;  // of one member
  std::size_t members_;
  std::size_t shared_ = 0;   // parameters that every member has
  std::size_t experts_ = 0;  // parameters of a member's experts
  Sizes sizes_;
};

extern template class ExpertParallelBlock<float>;
extern template class ExpertParallelBlock<double>;

// A model with such a block in each stage; with one member it is computed by one process.
template <typename T>
[[nodiscard]] Model<T> moe_model(const Problem& problem, const MoeShape& shape, std::size_t members,
                                 std::uint64_t seed);

extern template Model<float> moe_model(const Problem&, const MoeShape&, std::size_t, std::uint64_t);

}  // namespace counterflow::reference
