#pragma once

#include <cstdint>
#include <vector>

#include "reference/ep_backend.h"
#include "reference/layout.h"
#include "reference/linear.h"
#include "reference/stage_layers.h"

namespace counterflow::reference {

struct MoeShape {
  std::size_t sequences = 1;  // of this member
  std::size_t length = 4;     // rows of each
  std::size_t width = 4;
  std::size_t hidden = 6;   // of an expert
  std::size_t experts = 4;  // of all members; a multiple of them
  std::size_t top = 2;      // experts a row goes to

  [[nodiscard]] std::size_t rows() const { return sequences * length; }
};

// x + mixture(norm(x)): a router picks the `top` experts of each row by its logits (the lower of
// equals) and weighs them by the softmax of these; rows are permuted by expert and exchanged with
// the members that hold the experts (linear, GELU, linear), results come back the same way and are
// added in the order of the choices. A member holds experts/members of them, in member order.
//
// The rows of an expert stand by member, then by row, so its bits are those of one process that has
// the rows of all members one behind the other. Of the router W adds up each sequence by itself,
// then the sequences in order, like Attention. No row is dropped: there is room for all rows of all
// members.
template <typename T>
class MixtureOfExperts final : public StageLayers<T> {
 public:
  using typename StageLayers<T>::Sizes;
  // The group must outlive it. Throws std::invalid_argument where the experts cannot be shared out.
  MixtureOfExperts(const MoeShape& shape, EpBackend<T>& group);

  [[nodiscard]] Sizes sizes() const override { return sizes_; }
  // How many parameters, from the first, every member holds alike; the rest are of its experts.
  [[nodiscard]] std::size_t shared_parameters() const { return w_router_.count; }
  void initialise(std::uint64_t seed, std::uint64_t series, std::span<T> parameters) const override;
  void forward(std::span<const T> parameters, std::span<const T> input, std::span<T> output,
               std::span<T> saved) const override;
  void input_gradient(std::span<const T> parameters, std::span<const T> input,
                      std::span<const T> output_gradient, std::span<T> input_gradient,
                      std::span<T> saved) const override;
  void weight_gradient(std::span<const T> input, std::span<const T> saved,
                       std::span<T> gradients) const override;

 private:
  // Where each (row, choice) stands among the rows by expert.
  struct Routing {
    std::vector<std::size_t> place;   // [row * top + choice]
    std::vector<std::size_t> counts;  // [expert] rows that go there
  };
  // How many rows each member sends to each expert held here.
  using Arrivals = std::vector<std::vector<std::size_t>>;  // [member][expert here]

  void route(std::span<const T> logits, std::span<T> saved) const;
  [[nodiscard]] Routing routing(std::span<const T> saved) const;
  [[nodiscard]] Arrivals exchange_counts(const Routing& routing) const;
  [[nodiscard]] Arrivals arrivals(std::span<const T> saved) const;
  // Rows by expert go to where the experts are, and come to stand by expert, then member.
  [[nodiscard]] std::vector<T> dispatch(std::span<const T> by_expert, const Routing& routing,
                                        const Arrivals& arrivals) const;
  // And back.
  [[nodiscard]] std::vector<T> combine(std::span<const T> here, const Arrivals& arrivals) const;
  // Calls visit(expert here, first row, rows) for the experts held here.
  template <typename Visit>
  void for_each_expert(const Arrivals& arrivals, Visit visit) const;
  [[nodiscard]] std::size_t experts_here() const { return shape_.experts / group_.members(); }
  template <typename Span>
  Span rows_of(Span whole, std::size_t first, std::size_t count, std::size_t width) const {
    return whole.subspan(first * width, count * width);
  }

  MoeShape shape_;
  EpBackend<T>& group_;
  Linear<T> router_, up_, down_;
  Piece w_router_;                    // of the parameters
  std::vector<Piece> w_up_, w_down_;  // [expert here]
  // Of what is saved: of the rows here, the choices, their weights, what the experts made of them,
  // the gradient of the logits; of what came here, its counts, the rows, what goes into GELU (then
  // its gradient), what comes out, the gradient of the result.
  Piece choices_, weights_, results_, d_logits_;
  Piece counts_, arrived_, before_gelu_, after_gelu_, d_results_;
  Sizes sizes_;
};

extern template class MixtureOfExperts<float>;
extern template class MixtureOfExperts<double>;

}  // namespace counterflow::reference
