#include <algorithm>

#include "schedules/closed_form.h"
#include "schedules/families.h"
#include "schedules/turns.h"

// ZB-H2: ZB-H1 with twice the warm-up and twice the delay of W; what is left of the bubble is the
// way of the first microbatch down the pipeline.
namespace counterflow {
namespace {

Schedule generate_zb_h2(const Shape& shape) {
  Schedule schedule;
  for (Rank r = 0; r < shape.ranks; ++r) {
    const int warm_up = std::min(2 * (shape.ranks - 1 - r), shape.microbatches);
    schedule.ranks.push_back(
        alternate_split(single_stage_turns(r, shape.microbatches, warm_up), 2 * r));
  }
  return schedule;
}

std::optional<Formula> formula(const Problem& problem) {
  const auto terms = equal_stages(problem);
  if (!terms) return std::nullopt;
  const auto [p, m, v, forward, input, weight, latency] = *terms;
  if (m < 2 * p - 1 || weight > std::min(forward, input) || 2 * latency > forward + input) {
    return std::nullopt;
  }
  const Time span = (p - 1) * (forward + input + 2 * latency - 2 * weight);
  return Formula{
      std::max(span, (p - 1) * (forward + latency)),
      "ZB-H2 (arXiv 2401.10241): (p-1) max(F+I+2c-2W, F+c), equal stages, m >= 2p-1, W <= F, "
      "W <= I, 2c <= F+I"};
}

}  // namespace

Family zb_h2() {
  return {.name = "zb-h2",
          .title = "ZB-H2",
          .aliases = {"zb2p", "zb-2p", "zbh2"},
          .summary =
              "ZB-H1 with twice the warm-up: no bubble but the first microbatch's way, for 2p-1 "
              "activations.",
          .constraints = "none; made for m >= 2p-1",
          .formula_text = "(p-1) max(F+I+2c-2W, F+c) for m >= 2p-1, W <= F, W <= I, 2c <= F+I",
          .source = "Zero Bubble Pipeline Parallelism, arXiv 2401.10241",
          .splits_backward = true,
          .sibling = "interleaved-zb",
          .generate = generate_zb_h2,
          .formula = formula};
}

}  // namespace counterflow
