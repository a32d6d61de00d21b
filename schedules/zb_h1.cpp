#include <algorithm>

#include "schedules/closed_form.h"
#include "schedules/families.h"
#include "schedules/turns.h"

// ZB-H1: 1F1B with the weight gradients put off by r microbatches on rank r, into the bubble.
namespace counterflow {
namespace {

Schedule generate_zb_h1(const Shape& shape) {
  Schedule schedule;
  for (Rank r = 0; r < shape.ranks; ++r) {
    const int warm_up = std::min(shape.ranks - 1 - r, shape.microbatches);
    schedule.ranks.push_back(
        alternate_split(single_stage_turns(r, shape.microbatches, warm_up), r));
  }
  return schedule;
}

std::optional<Formula> formula(const Problem& problem) {
  const auto terms = equal_stages(problem);
  if (!terms || terms->latency != Time{0} ||
      terms->weight > std::min(terms->forward, terms->input)) {
    return std::nullopt;
  }
  const auto [p, m, v, forward, input, weight, latency] = *terms;
  if (m >= p) {
    return Formula{
        (p - 1) * (forward + input - weight),
        "ZB-H1 (arXiv 2401.10241): (p-1)(F+I-W), equal stages, m >= p, W <= F, W <= I, no "
        "latency"};
  }
  return Formula{
      (m + p - 1) * (forward + input) + weight - m * (forward + input + weight),
      "ZB-H1: makespan (m+p-1)(F+I)+W, equal stages, m <= p, W <= F, W <= I, no latency"};
}

}  // namespace

Family zb_h1() {
  return {.name = "zb-h1",
          .title = "ZB-H1",
          .aliases = {"zb1p", "zb-1p", "zbh1", "zero-bubble"},
          .summary = "1F1B with I and W apart; W fills a part of the bubble at 1F1B's peak memory.",
          .constraints = "none",
          .formula_text =
              "(p-1)(F+I-W) for m >= p; makespan (m+p-1)(F+I)+W for m <= p; W <= F, W <= I, "
              "no latency",
          .source = "Zero Bubble Pipeline Parallelism, arXiv 2401.10241",
          .splits_backward = true,
          .sibling = "interleaved-zb",
          .generate = generate_zb_h1,
          .formula = formula};
}

}  // namespace counterflow
