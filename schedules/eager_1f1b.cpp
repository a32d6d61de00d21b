#include <algorithm>

#include "schedules/closed_form.h"
#include "schedules/families.h"
#include "schedules/turns.h"

// Eager 1F1B: 1F1B with twice the warm-up, so that a round trip of two hops hides behind compute.
namespace counterflow {
namespace {

Schedule generate_eager(const Shape& shape) {
  Schedule schedule;
  for (Rank r = 0; r < shape.ranks; ++r) {
    const int warm_up = std::min(2 * (shape.ranks - 1 - r), shape.microbatches);
    schedule.ranks.push_back(alternate(single_stage_turns(r, shape.microbatches, warm_up)));
  }
  return schedule;
}

std::optional<Formula> formula(const Problem& problem) {
  const auto terms = equal_stages_full_backward(problem);
  if (!terms || 2 * terms->latency > terms->forward + terms->backward()) return std::nullopt;
  const Time turn = terms->forward + terms->backward() + 2 * terms->latency;
  return Formula{(terms->ranks - 1) * turn,
                 "eager 1F1B (arXiv 2211.05322): (p-1)(F+B+2c), equal stages, 2c <= F+B"};
}

}  // namespace

Family eager_1f1b() {
  return {.name = "eager-1f1b",
          .title = "eager 1F1B",
          .aliases = {"eager1f1b", "1f1b-eager"},
          .summary = "1F1B with twice the warm-up: memory for hiding latency.",
          .constraints = "none",
          .formula_text = "(p-1)(F+B+2c), 2c <= F+B",
          .source = "AlpaComm, arXiv 2211.05322",
          .sibling = "interleaved-1f1b",
          .generate = generate_eager,
          .formula = formula};
}

}  // namespace counterflow
