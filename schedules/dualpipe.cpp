#include <algorithm>

#include "schedules/bidirectional.h"
#include "schedules/dualpipe_phases.h"
#include "schedules/families.h"

// DualPipe: microbatches enter at both ends, the forward of one direction fused with the backward
// of the other.
namespace counterflow {
namespace {

Schedule generate_dualpipe(const Shape& shape) {
  const int p = shape.ranks;
  Schedule schedule;
  for (Rank r = 0; r < p; ++r) {
    const auto stream = [&](int direction) {
      const auto [first, count] = direction_of(shape.microbatches, direction);
      return PhaseStream{direction == 0 ? r : p - 1 - r, direction, first, count};
    };
    const int near = r < p / 2 ? 0 : 1;
    schedule.ranks.push_back(dualpipe_order({.half = p / 2,
                                             .distance = std::min(r, p - 1 - r),
                                             .near = stream(near),
                                             .far = stream(1 - near)}));
  }
  return schedule;
}

std::optional<std::string> refuse(const Shape& shape) {
  const auto refusal = refuse_odd_ranks("dualpipe", shape);
  if (!refusal) return std::nullopt;
  return *refusal + " (or dualpipev, which takes any)";
}

std::optional<Formula> formula(const Problem& problem) {
  if (problem.microbatches % 2 != 0) return std::nullopt;
  return dualpipe_formula(problem, problem.ranks() / 2, problem.microbatches / 2);
}

}  // namespace

Family dualpipe() {
  return {.name = "dualpipe",
          .title = "DualPipe",
          .aliases = {"dual-pipe"},
          .summary =
              "Two streams from both ends, forward of one fused with backward of the other; twice "
              "the parameters.",
          .constraints = "p even; made for m even, m >= 2p",
          .formula_text = "(p/2-1)(F&B+B-3W) where F = I >= W, max(F,B) <= F&B <= F+B, no latency",
          .source = "DeepSeek-V3, arXiv 2412.19437; github.com/deepseek-ai/DualPipe",
          .placement = PlacementKind::bidirectional,
          .splits_backward = true,
          .fuses_pairs = true,
          .sibling = "dualpipev",
          .refuse = refuse,
          .generate = generate_dualpipe,
          .formula = formula};
}

}  // namespace counterflow
