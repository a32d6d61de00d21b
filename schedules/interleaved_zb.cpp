#include <algorithm>

#include "schedules/closed_form.h"
#include "schedules/families.h"
#include "schedules/microbatch_groups.h"

// Interleaved zero bubble: ZB-H1 over v stages a rank.
namespace counterflow {
namespace {

Schedule generate_interleaved_zb(const Shape& shape) {
  Schedule schedule;
  for (Rank r = 0; r < shape.ranks; ++r) {
    const int warm_up = shape.ranks - 1 - r + interleaving_lead(shape);
    schedule.ranks.push_back(alternate_split(interleaved_turns(shape, r, warm_up), r));
  }
  return schedule;
}

std::optional<std::string> refuse(const Shape& shape) {
  return refuse_group_size("interleaved-zb", shape);
}

std::optional<Formula> formula(const Problem& problem) {
  const auto terms = equal_stages(problem);
  if (!terms || terms->latency != Time{0} || terms->microbatches < terms->ranks ||
      terms->weight > std::min(terms->forward, terms->input)) {
    return std::nullopt;
  }
  return Formula{
      (terms->ranks - 1) * (terms->forward + terms->input - terms->weight),
      "interleaved zero bubble (arXiv 2401.10241): (p-1)(F+I-W)/v, equal stages, m >= p, "
      "W <= F, W <= I, no latency"};
}

}  // namespace

Family interleaved_zb() {
  return {
      .name = "interleaved-zb",
      .title = "interleaved zero bubble",
      .aliases = {"InterleavedZeroBubble", "ScheduleInterleavedZeroBubble", "interleaved-zb1p"},
      .summary = "Interleaved 1F1B with I and W apart and half the extra warm-up.",
      .constraints = "group_size: p or more, or all of m; the last group too unless it is full",
      .formula_text = "(p-1)(F+I-W)/v for m >= p, W <= F, W <= I, no latency",
      .source = "Zero Bubble Pipeline Parallelism, arXiv 2401.10241; the same order as PyTorch's",
      .default_chunks = 2,
      .takes_groups = true,
      .takes_chunks = true,
      .splits_backward = true,
      .refuse = refuse,
      .generate = generate_interleaved_zb,
      .formula = formula};
}

}  // namespace counterflow
