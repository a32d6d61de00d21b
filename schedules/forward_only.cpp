#include "schedules/families.h"
#include "schedules/microbatch_groups.h"

// Forward only: evaluation, log-probabilities, generation.
namespace counterflow {
namespace {

Schedule generate_forward_only(const Shape& shape) {
  Schedule schedule;
  for (Rank r = 0; r < shape.ranks; ++r) {
    std::vector<Slot> order;
    for (const auto& [stage, microbatch] : interleaved_turns(shape, r, 0).forwards) {
      order.push_back({compute_op(OpKind::forward, stage, microbatch), {}});
    }
    schedule.ranks.push_back(std::move(order));
  }
  return schedule;
}

std::optional<std::string> refuse(const Shape& shape) {
  return refuse_group_size("forward-only", shape);
}

}  // namespace

Family forward_only() {
  return {.name = "forward-only",
          .title = "forward only",
          .aliases = {"eval", "inference"},
          .summary = "Forwards alone, microbatches in interleaved 1F1B's order.",
          .constraints = "group_size: p or more, or all of m; the last group too unless it is full",
          .formula_text = "",
          .source = "the forwards of Megatron-LM, arXiv 2104.04473",
          .takes_groups = true,
          .takes_chunks = true,
          .forward_only = true,
          .refuse = refuse,
          .generate = generate_forward_only};
}

}  // namespace counterflow
