#include <algorithm>

#include "schedules/closed_form.h"
#include "schedules/families.h"
#include "schedules/turns.h"

// 1F1B: warm-up forwards that shrink towards the last rank, then forward and backward in turn.
namespace counterflow {
namespace {

Schedule generate_1f1b(const Shape& shape) {
  Schedule schedule;
  for (Rank r = 0; r < shape.ranks; ++r) {
    const int warm_up = std::min(shape.ranks - 1 - r, shape.microbatches);
    schedule.ranks.push_back(alternate(single_stage_turns(r, shape.microbatches, warm_up)));
  }
  return schedule;
}

std::optional<Formula> formula(const Problem& problem) {
  const auto terms = equal_stages_full_backward(problem);
  if (!terms || terms->latency != Time{0}) return std::nullopt;
  return Formula{(terms->ranks - 1) * (terms->forward + terms->backward()),
                 "PipeDream-Flush (arXiv 2006.09503): (p-1)(F+B), equal stages, no latency"};
}

}  // namespace

Family one_forward_one_backward() {
  return {
      .name = "1f1b",
      .title = "1F1B",
      .aliases = {"Schedule1F1B", "pipedream-flush", "dapple", "one-f-one-b"},
      .summary = "One forward, one backward in turn: at most p - r activations on rank r.",
      .constraints = "none",
      .formula_text = "(p-1)(F+B), no latency",
      .source = "PipeDream-Flush, arXiv 2006.09503; DAPPLE, arXiv 2007.01045; PyTorch, Megatron-LM",
      .sibling = "interleaved-1f1b",
      .generate = generate_1f1b,
      .formula = formula};
}

}  // namespace counterflow
