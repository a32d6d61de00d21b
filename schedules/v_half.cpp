#include "schedules/families.h"
#include "schedules/v_block.h"

// V-Half: the V placement at half of 1F1B's peak memory.
namespace counterflow {
namespace {

Schedule generate_v_half(const Shape& shape) {
  const int p = shape.ranks;
  const int d = p % 2 == 0 ? 3 : 0;
  std::vector<BlockRank> block;
  for (Rank r = 0; r < p; ++r) {
    block.push_back({.forward = {2 * r, 3 * p - 2 - r},
                     .backward = {6 * p + d - 2 - r, 3 * p + d - 1 + 2 * r}});
  }
  return repeat_block(block, BlockBackward::split, shape.microbatches);
}

}  // namespace

Family v_half() {
  return {
      .name = "v-half",
      .title = "V-Half",
      .aliases = {"vhalf"},
      .summary = "V placement at half of 1F1B's peak activations and little bubble.",
      .constraints = "2 stages a rank",
      .formula_text = "steady phase: a microbatch costs max(F+I+W, 2 max(F,I) + W/2), no latency",
      .source = "Pipeline Parallelism with Controllable Memory, arXiv 2405.15362",
      .placement = PlacementKind::v,
      .default_chunks = 2,
      .splits_backward = true,
      .sibling = "interleaved-zb",
      .generate = generate_v_half};
}

}  // namespace counterflow
