#include <algorithm>

#include "schedules/closed_form.h"
#include "schedules/families.h"
#include "schedules/microbatch_groups.h"

// Interleaved 1F1B: several stages a rank, microbatches in groups through one stage after another.
namespace counterflow {
namespace {

Schedule generate_interleaved(const Shape& shape) {
  Schedule schedule;
  for (Rank r = 0; r < shape.ranks; ++r) {
    const int warm_up = 2 * (shape.ranks - 1 - r) + interleaving_lead(shape);
    schedule.ranks.push_back(alternate(interleaved_turns(shape, r, warm_up)));
  }
  return schedule;
}

std::optional<std::string> refuse(const Shape& shape) {
  return refuse_group_size("interleaved-1f1b", shape);
}

std::optional<Formula> formula(const Problem& problem) {
  const auto terms = equal_stages_full_backward(problem);
  if (!terms || terms->latency != Time{0}) return std::nullopt;
  const Time turn = terms->forward + terms->backward();
  const int missing = std::max(0, terms->ranks - terms->microbatches);
  return Formula{(terms->ranks - 1 + missing * (terms->chunks - 1)) * turn,
                 missing == 0
                     ? "Megatron-LM (arXiv 2104.04473): (p-1)(F+B)/v, equal stages, m >= p, "
                       "no latency"
                     : "(p-1)(F+B)/v + (p-m)(v-1)(F+B)/v, equal stages, m < p, no latency"};
}

}  // namespace

Family interleaved_1f1b() {
  return {.name = "interleaved-1f1b",
          .title = "interleaved 1F1B",
          .aliases = {"Interleaved1F1B", "ScheduleInterleaved1F1B", "interleaved", "vpp"},
          .summary = "1F1B over v stages a rank: the bubble divided by v, for more transfers.",
          .constraints = "group_size: p or more, or all of m; the last group too unless it is full",
          .formula_text = "(p-1)(F+B)/v for m >= p, (p-m)(v-1)(F+B)/v more for m < p; no latency",
          .source = "Megatron-LM, arXiv 2104.04473; the same order as PyTorch's",
          .default_chunks = 2,
          .takes_groups = true,
          .takes_chunks = true,
          .refuse = refuse,
          .generate = generate_interleaved,
          .formula = formula};
}

}  // namespace counterflow
