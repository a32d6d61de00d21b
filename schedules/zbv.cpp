#include <algorithm>
#include <array>

#include "schedules/closed_form.h"
#include "schedules/families.h"
#include "schedules/turns.h"

// ZB-V: two stages a rank on the V placement, no bubble but the first microbatch's way at F = I =
// W.
namespace counterflow {
namespace {

// One rank's order, written for max(2p-1, m) microbatches; those from m on are left out, which
// keeps the order of the rest legal: no microbatch waits for another.
class ZbvWriter {
 public:
  ZbvWriter(const Shape& shape, Rank rank)
      : stages_{rank, 2 * shape.ranks - 1 - rank}, microbatches_(shape.microbatches) {}

  void forward(int chunk) { emit(OpKind::forward, chunk); }
  void input(int chunk) { emit(OpKind::backward_input, chunk); }
  void weight(int chunk) { emit(OpKind::backward_weight, chunk); }
  [[nodiscard]] int count(OpKind kind, int chunk) const { return counts_[index(kind, chunk)]; }
  [[nodiscard]] std::vector<Slot> take() { return std::move(order_); }

 private:
  static std::size_t index(OpKind kind, int chunk) {
    return 2 * static_cast<std::size_t>(kind) + static_cast<std::size_t>(chunk);
  }
  void emit(OpKind kind, int chunk) {
    const Microbatch microbatch = counts_[index(kind, chunk)]++;
    if (microbatch >= microbatches_) return;
    order_.push_back({compute_op(kind, stages_[static_cast<std::size_t>(chunk)], microbatch), {}});
  }

  std::array<Stage, 2> stages_;
  int microbatches_;
  std::array<int, 2 * (static_cast<std::size_t>(OpKind::backward_weight) + 1)> counts_{};
  std::vector<Slot> order_;
};

void descend(ZbvWriter& out, int ranks, Rank rank) {
  for (int i = 0; i < 2 * (ranks - rank) - 1; ++i) out.forward(0);
  for (int i = 0; i < rank; ++i) {
    out.forward(1);
    out.forward(0);
  }
  for (int i = 0; i < ranks - rank; ++i) {
    out.forward(1);
    out.input(1);
    out.weight(1);
  }
}

void run_steady(ZbvWriter& out, int forwards) {
  while (out.count(OpKind::forward, 1) < out.count(OpKind::forward, 0) ||
         out.count(OpKind::forward, 0) < forwards) {
    if (out.count(OpKind::forward, 0) < forwards) out.forward(0);
    out.input(0);
    out.weight(0);
    out.forward(1);
    out.input(1);
    out.weight(1);
  }
}

void drain(ZbvWriter& out, int ranks, Rank rank, int total) {
  for (int i = 0; i < rank; ++i) {
    out.input(0);
    out.input(1);
  }
  for (int i = 0; i < ranks - rank; ++i) {
    out.input(0);
    out.weight(0);
  }
  for (const int chunk : {1, 0}) {
    while (out.count(OpKind::backward_weight, chunk) < total) out.weight(chunk);
  }
}

Schedule generate_zbv(const Shape& shape) {
  const int total = std::max(2 * shape.ranks - 1, shape.microbatches);
  Schedule schedule;
  for (Rank r = 0; r < shape.ranks; ++r) {
    ZbvWriter out(shape, r);
    descend(out, shape.ranks, r);
    run_steady(out, total);
    drain(out, shape.ranks, r, total);
    schedule.ranks.push_back(out.take());
  }
  return schedule;
}

std::optional<Formula> formula(const Problem& problem) {
  const auto terms = equal_stages(problem);
  if (!terms || terms->latency != Time{0} || terms->forward != terms->input ||
      terms->forward != terms->weight || terms->microbatches < 2 * terms->ranks - 1) {
    return std::nullopt;
  }
  return Formula{(terms->ranks - 1) * terms->forward,
                 "ZB-V (arXiv 2405.15362): no idle within a rank's span, (p-1)F/v before it; equal "
                 "stages, F = I = W, m >= 2p-1, no latency"};
}

}  // namespace

Family zbv() {
  return {
      .name = "zbv",
      .title = "ZB-V",
      .aliases = {"ZBVZeroBubble", "ScheduleZBVZeroBubble", "zb-v"},
      .summary = "Zero bubble on the V placement at 1F1B's peak memory, balanced over the ranks.",
      .constraints = "2 stages a rank; made for m >= 2p-1",
      .formula_text = "0 within a rank's span at F = I = W, m >= 2p-1, no latency",
      .source =
          "Pipeline Parallelism with Controllable Memory, arXiv 2405.15362; the hand order, as "
          "in PyTorch",
      .placement = PlacementKind::v,
      .default_chunks = 2,
      .splits_backward = true,
      .sibling = "interleaved-zb",
      .generate = generate_zbv,
      .formula = formula};
}

}  // namespace counterflow
