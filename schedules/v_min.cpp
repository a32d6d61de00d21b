#include "schedules/families.h"
#include "schedules/v_block.h"

// V-Min: the V placement at a third of 1F1B's peak memory, the least a V can do.
namespace counterflow {
namespace {

Schedule generate_v_min(const Shape& shape) {
  const int p = shape.ranks;
  const int d = p % 3 == 0 ? 2 : 0;
  std::vector<BlockRank> block;
  for (Rank r = 0; r < p; ++r) {
    block.push_back(
        {.forward = {r, 2 * p - 1 - r}, .backward = {4 * p + d - 1 - r, 2 * p + d + r}});
  }
  return repeat_block(block, BlockBackward::split, shape.microbatches);
}

}  // namespace

Family v_min() {
  return {
      .name = "v-min",
      .title = "V-Min",
      .aliases = {"vmin"},
      .summary = "V placement at a third of 1F1B's peak activations; sensitive to uneven costs.",
      .constraints = "2 stages a rank",
      .formula_text = "steady phase: a microbatch costs max(F+I+W, 3 max(F,I)), p > 2, no latency",
      .source = "Pipeline Parallelism with Controllable Memory, arXiv 2405.15362",
      .placement = PlacementKind::v,
      .default_chunks = 2,
      .splits_backward = true,
      .sibling = "interleaved-zb",
      .generate = generate_v_min};
}

}  // namespace counterflow
