#include "schedules/dualpipe_phases.h"

#include <algorithm>
#include <deque>

#include "schedules/closed_form.h"
#include "schedules/turns.h"

namespace counterflow {
namespace {

class PhaseWriter {
 public:
  explicit PhaseWriter(const PhaseRank& rank) : near_{rank.near}, far_{rank.far} {}

  void forward_near() { emit(forward(near_)); }
  void forward_far() { emit(forward(far_)); }
  void backward_near() { emit(next_backward(near_, OpKind::backward)); }
  void backward_far() { emit(next_backward(far_, OpKind::backward)); }
  void input_near() { input(near_); }
  void input_far() { input(far_); }
  // The oldest due, of either stream.
  void weight() {
    emit(weights_.front());
    weights_.pop_front();
  }
  void forward_near_backward_far() { fuse(forward(near_), next_backward(far_, OpKind::backward)); }
  void forward_far_backward_near() { fuse(forward(far_), next_backward(near_, OpKind::backward)); }
  [[nodiscard]] std::vector<Slot> take() { return std::move(order_); }

 private:
  struct Stream {
    PhaseStream of;
    int forwards = 0;
    int backwards = 0;
  };

  // A microbatch the stream does not have is a `none`.
  static Op make(OpKind kind, const PhaseStream& stream, int index) {
    if (index >= stream.count) return {};
    return compute_op(kind, stream.stage, stream.first + index, stream.replica);
  }
  static Op forward(Stream& stream) { return make(OpKind::forward, stream.of, stream.forwards++); }
  static Op next_backward(Stream& stream, OpKind kind) {
    return make(kind, stream.of, stream.backwards++);
  }
  void input(Stream& stream) {
    const Op op = next_backward(stream, OpKind::backward_input);
    emit(op);
    Op later = op;
    if (op.kind != OpKind::none) later.kind = OpKind::backward_weight;
    weights_.push_back(later);
  }
  void emit(const Op& op) {
    if (op.kind != OpKind::none) order_.push_back({op, {}});
  }
  void fuse(const Op& forward, const Op& backward) {
    if (forward.kind != OpKind::none && backward.kind != OpKind::none) {
      order_.push_back({forward, backward});
      return;
    }
    emit(forward);
    emit(backward);
  }

  Stream near_;
  Stream far_;
  std::deque<Op> weights_;
  std::vector<Slot> order_;
};

void fill(PhaseWriter& out, int half, int distance) {
  const int inward = half - distance - 1;
  for (int i = 0; i < 2 * inward; ++i) out.forward_near();  // 1
  for (int i = 0; i <= distance; ++i) {                     // 2
    out.forward_near();
    out.forward_far();
  }
  for (int i = 0; i < inward; ++i) {  // 3
    out.input_far();
    out.weight();
    out.forward_far();
  }
}

void cross(PhaseWriter& out, int half, int distance, int microbatches) {
  const int inward = half - distance - 1;
  for (int i = 0; i < microbatches - 2 * half + distance + 1; ++i) {  // 4
    // At the turning point the first backward waits for the forward just before it.
    if (i == 0 && inward == 0) {
      out.forward_near();
      out.backward_far();
    } else {
      out.forward_near_backward_far();
    }
    out.forward_far_backward_near();
  }
  for (int i = 0; i < inward; ++i) {  // 5
    out.backward_far();
    out.forward_far_backward_near();
  }
}

void drain(PhaseWriter& out, int half, int distance) {
  const int inward = half - distance - 1;
  const int cut = (distance + 1) / 2;    // from this iteration of phase 6 on, W is put off
  for (int i = 0; i <= distance; ++i) {  // 6
    const bool far_cut = i > cut || (i == cut && distance % 2 == 1);
    far_cut ? out.input_far() : out.backward_far();
    i >= cut ? out.input_near() : out.backward_near();
  }
  for (int i = 0; i < inward; ++i) {  // 7
    out.weight();
    out.input_near();
  }
  for (int i = 0; i <= distance; ++i) out.weight();  // 8
}

}  // namespace

std::vector<Slot> dualpipe_order(const PhaseRank& rank) {
  PhaseWriter out(rank);
  const int microbatches = std::max({2 * rank.half, rank.near.count, rank.far.count});
  fill(out, rank.half, rank.distance);
  cross(out, rank.half, rank.distance, microbatches);
  drain(out, rank.half, rank.distance);
  return out.take();
}

std::optional<Formula> dualpipe_formula(const Problem& problem, int half, int microbatches) {
  const auto terms = equal_stages_full_backward(problem);
  if (!terms || terms->latency != Time{0} || microbatches < 2 * half ||
      terms->forward < terms->input || terms->input < terms->weight) {
    return std::nullopt;
  }
  const auto pair = common_pair_cost(problem, PairsOf::different_chunks);
  // A pair faster than its longer part would leave idle time the formula does not know.
  if (!pair || *pair > terms->forward + terms->backward() ||
      *pair < std::max(terms->forward, terms->backward())) {
    return std::nullopt;
  }
  if (terms->forward == terms->input) {
    return Formula{
        (half - 1) * (*pair + terms->backward() - 3 * terms->weight),
        "DualPipe (arXiv 2412.19437): (p/2-1)(F&B+B-3W), p stages; exact for the rank that "
        "idles most where F = I >= W, max(F,B) <= F&B <= F+B, equal stages, no latency"};
  }
  return Formula{
      (half - 1) * (*pair + terms->forward - 2 * terms->weight),
      "DualPipe where F >= I >= W: (p/2-1)(F&B+F-2W), p stages, for the rank that idles most; "
      "max(F,B) <= F&B <= F+B, equal stages, no latency"};
}

}  // namespace counterflow
