#include "schedules/closed_form.h"
#include "schedules/families.h"
#include "schedules/turns.h"

// Looped BFS: GPipe over v stages a rank, one stage after the other.
namespace counterflow {
namespace {

Schedule generate_looped_bfs(const Shape& shape) {
  Schedule schedule;
  for (Rank r = 0; r < shape.ranks; ++r) {
    std::vector<Slot> order;
    for (int chunk = 0; chunk < shape.chunks; ++chunk) {
      for (Microbatch i = 0; i < shape.microbatches; ++i) {
        order.push_back({compute_op(OpKind::forward, chunk * shape.ranks + r, i), {}});
      }
    }
    for (int chunk = shape.chunks - 1; chunk >= 0; --chunk) {
      for (Microbatch i = shape.microbatches - 1; i >= 0; --i) {
        order.push_back({compute_op(OpKind::backward, chunk * shape.ranks + r, i), {}});
      }
    }
    schedule.ranks.push_back(std::move(order));
  }
  return schedule;
}

std::optional<Formula> formula(const Problem& problem) {
  const auto terms = equal_stages_full_backward(problem);
  if (!terms || terms->latency != Time{0} || terms->microbatches < terms->ranks) {
    return std::nullopt;
  }
  return Formula{
      (terms->ranks - 1) * (terms->forward + terms->backward()),
      "breadth-first (arXiv 2211.05953): (p-1)(F+B)/v, equal stages, m >= p, no latency"};
}

}  // namespace

Family looped_bfs() {
  return {.name = "looped-bfs",
          .title = "looped BFS",
          .aliases = {"LoopedBFS", "ScheduleLoopedBFS", "breadth-first"},
          .summary = "All forwards stage by stage, then all backwards in the reverse order.",
          .constraints = "none",
          .formula_text = "(p-1)(F+B)/v for m >= p, no latency",
          .source = "Breadth-First Pipeline Parallelism, arXiv 2211.05953; PyTorch",
          .default_chunks = 2,
          .takes_chunks = true,
          .generate = generate_looped_bfs,
          .formula = formula};
}

}  // namespace counterflow
