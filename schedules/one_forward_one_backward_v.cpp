#include "schedules/families.h"
#include "schedules/v_block.h"

// 1F1B-V: the V placement without cutting the backward, at two thirds of 1F1B's peak memory.
namespace counterflow {
namespace {

// The slot of the j-th backward of a microbatch, j counted from the last stage down.
int backward_slot(int p, int j) {
  const int shift = p % 3 == 2 ? 2 : p % 3 == 0 ? 1 : 0;
  const int start = p % 3 == 0 ? 2 * p + 3 : 2 * p;
  return start + 2 * j + 3 * ((j + shift) / 3);
}

Schedule generate_1f1b_v(const Shape& shape) {
  const int p = shape.ranks;
  std::vector<BlockRank> block;
  for (Rank r = 0; r < p; ++r) {
    block.push_back({.forward = {r, 2 * p - 1 - r},
                     .backward = {backward_slot(p, 2 * p - 1 - r), backward_slot(p, r)}});
  }
  return repeat_block(block, BlockBackward::full, shape.microbatches);
}

}  // namespace

Family one_forward_one_backward_v() {
  return {
      .name = "1f1b-v",
      .title = "1F1B-V",
      .aliases = {"v-1f1b", "1f1bv"},
      .summary = "V placement with an uncut backward, at two thirds of 1F1B's peak activations.",
      .constraints = "2 stages a rank",
      .formula_text = "",
      .source = "Pipeline Parallelism with Controllable Memory, arXiv 2405.15362",
      .placement = PlacementKind::v,
      .default_chunks = 2,
      .sibling = "interleaved-1f1b",
      .generate = generate_1f1b_v};
}

}  // namespace counterflow
