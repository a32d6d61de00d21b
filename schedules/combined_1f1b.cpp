#include "schedules/closed_form.h"
#include "schedules/families.h"
#include "schedules/microbatch_groups.h"

// Combined 1F1B: interleaved 1F1B with one warm-up forward more and every steady F and B fused.
namespace counterflow {
namespace {

Schedule generate_combined(const Shape& shape) {
  Schedule schedule;
  for (Rank r = 0; r < shape.ranks; ++r) {
    const int warm_up = 2 * (shape.ranks - 1 - r) + interleaving_lead(shape) + 1;
    schedule.ranks.push_back(alternate_fused(interleaved_turns(shape, r, warm_up)));
  }
  return schedule;
}

std::optional<std::string> refuse(const Shape& shape) {
  return refuse_group_size("combined-1f1b", shape);
}

std::optional<Formula> formula(const Problem& problem) {
  const auto terms = equal_stages_full_backward(problem);
  if (!terms || terms->latency != Time{0} || terms->microbatches < terms->ranks) {
    return std::nullopt;
  }
  const Time sum = terms->forward + terms->backward();
  if (common_pair_cost(problem, PairsOf::any_chunks) != sum) return std::nullopt;
  return Formula{(terms->ranks - 1) * sum,
                 "(p-1)(F+B)/v, equal stages, m >= p, F&B = F+B, no latency"};
}

}  // namespace

Family combined_1f1b() {
  return {.name = "combined-1f1b",
          .title = "combined 1F1B",
          .aliases = {"combined", "1f1b-overlap", "ep-overlap"},
          .summary = "Interleaved 1F1B with every steady forward and backward fused into one pair.",
          .constraints = "group_size: p or more, or all of m; the last group too unless it is full",
          .formula_text = "(p-1)(F+B)/v at F&B = F+B, m >= p, no latency",
          .source = "Megatron-LM, combined 1F1B for expert-parallel overlap",
          .default_chunks = 2,
          .takes_groups = true,
          .takes_chunks = true,
          .fuses_pairs = true,
          .refuse = refuse,
          .generate = generate_combined,
          .formula = formula};
}

}  // namespace counterflow
