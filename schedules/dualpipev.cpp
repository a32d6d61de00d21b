#include "schedules/dualpipe_phases.h"
#include "schedules/families.h"

// DualPipeV: DualPipe cut in half, the two streams being the two arms of a V.
namespace counterflow {
namespace {

Schedule generate_dualpipev(const Shape& shape) {
  const int p = shape.ranks;
  Schedule schedule;
  for (Rank r = 0; r < p; ++r) {
    schedule.ranks.push_back(
        dualpipe_order({.half = p,
                        .distance = r,
                        .near = {.stage = r, .count = shape.microbatches},
                        .far = {.stage = 2 * p - 1 - r, .count = shape.microbatches}}));
  }
  return schedule;
}

std::optional<Formula> formula(const Problem& problem) {
  return dualpipe_formula(problem, problem.ranks(), problem.microbatches);
}

}  // namespace

Family dualpipev() {
  return {.name = "dualpipev",
          .title = "DualPipeV",
          .aliases = {"ScheduleDualPipeV", "dualpipe-v"},
          .summary =
              "DualPipe on a V placement: the same overlap without the second copy of the "
              "parameters.",
          .constraints = "2 stages a rank; made for m >= 2p",
          .formula_text =
              "(S/2-1)(F&B+B-3W), S = 2p stages, where F = I >= W, max(F,B) <= F&B <= F+B, m >= "
              "2p, no latency",
          .source = "github.com/deepseek-ai/DualPipe; the same order as PyTorch's",
          .placement = PlacementKind::v,
          .default_chunks = 2,
          .splits_backward = true,
          .fuses_pairs = true,
          .sibling = "combined-1f1b",
          .generate = generate_dualpipev,
          .formula = formula};
}

}  // namespace counterflow
