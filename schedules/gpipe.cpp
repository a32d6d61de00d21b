#include "schedules/closed_form.h"
#include "schedules/families.h"
#include "schedules/turns.h"

// GPipe: all forwards, then all backwards.
namespace counterflow {
namespace {

Schedule generate_gpipe(const Shape& shape) {
  Schedule schedule;
  for (Rank r = 0; r < shape.ranks; ++r) {
    schedule.ranks.push_back(
        alternate(single_stage_turns(r, shape.microbatches, shape.microbatches)));
  }
  return schedule;
}

std::optional<Formula> formula(const Problem& problem) {
  const auto terms = equal_stages_full_backward(problem);
  if (!terms) return std::nullopt;
  const Time turn = terms->forward + terms->backward() + 2 * terms->latency;
  return Formula{(terms->ranks - 1) * turn,
                 "GPipe (arXiv 1811.06965): (p-1)(F+B+2c), equal stages"};
}

}  // namespace

Family gpipe() {
  return {.name = "gpipe",
          .title = "GPipe",
          .aliases = {"ScheduleGPipe", "fthenb", "f-then-b"},
          .summary = "All forwards, then all backwards.",
          .constraints = "none",
          .formula_text = "(p-1)(F+B+2c)",
          .source = "GPipe, arXiv 1811.06965; microbatches ascending in the backward as in PyTorch",
          .sibling = "looped-bfs",
          .generate = generate_gpipe,
          .formula = formula};
}

}  // namespace counterflow
