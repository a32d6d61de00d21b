#include "schedules/bidirectional.h"
#include "schedules/families.h"
#include "schedules/slot_grid.h"
#include "schedules/turns.h"

// Chimera: two 1F1B pipelines in opposite directions, p/2 microbatches of each at a time.
namespace counterflow {
namespace {

Schedule generate_chimera(const Shape& shape) {
  const int p = shape.ranks;
  std::vector<std::vector<PlacedOp>> ranks(static_cast<std::size_t>(p));
  for (const int direction : {0, 1}) {
    const auto [first, count] = direction_of(shape.microbatches, direction);
    for (int i = 0; i < count; ++i) {
      const std::int64_t unit = i / (p / 2);
      const std::int64_t begin = 2 * (p * unit + i % (p / 2));
      for (Stage s = 0; s < p; ++s) {
        auto& rank = ranks[static_cast<std::size_t>(direction == 0 ? s : p - 1 - s)];
        rank.push_back({begin + s, compute_op(OpKind::forward, s, first + i, direction)});
        rank.push_back({begin + std::int64_t{2 * p - 1 - s},
                        compute_op(OpKind::backward, s, first + i, direction)});
      }
    }
  }
  return order_by_slot(std::move(ranks));
}

std::optional<std::string> refuse(const Shape& shape) {
  return refuse_odd_ranks("chimera", shape);
}

}  // namespace

Family chimera() {
  return {.name = "chimera",
          .title = "Chimera",
          .aliases = {},
          .summary = "Two pipelines in opposite directions over two copies of the parameters.",
          .constraints = "p even; made for m a multiple of p",
          .formula_text = "",
          .source = "Chimera, arXiv 2107.06925; without forward doubling and backward halving",
          .placement = PlacementKind::bidirectional,
          .sibling = "interleaved-1f1b",
          .refuse = refuse,
          .generate = generate_chimera};
}

}  // namespace counterflow
