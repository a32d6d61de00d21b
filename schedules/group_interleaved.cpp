#include <fmt/core.h>

#include <numeric>

#include "schedules/families.h"
#include "schedules/slot_grid.h"
#include "schedules/turns.h"

// Group-interleaved: microbatches in groups of g <= p through the stages of a loop placement,
// repeated as one block of slots.
namespace counterflow {
namespace {

int default_group(int ranks) {
  return (ranks + 1) / 2;
}

// The slots between the forward of chunk 0 and of another chunk.
std::int64_t chunk_offset(const Shape& shape, int chunk) {
  const int group = shape.group_size;
  const int rounds = (default_group(shape.ranks) + group - 1) / group;
  const std::int64_t shift = chunk / (shape.chunks / std::gcd(shape.chunks, rounds));
  return std::int64_t{3} * group * (std::int64_t{rounds} * chunk + shift);
}

Schedule generate_grouped(const Shape& asked) {
  Shape shape = asked;
  if (shape.group_size == 0) shape.group_size = default_group(shape.ranks);
  const int group = shape.group_size;
  const int last = shape.chunks - 1;
  std::vector<std::vector<PlacedOp>> ranks(static_cast<std::size_t>(shape.ranks));
  for (Rank r = 0; r < shape.ranks; ++r) {
    auto& rank = ranks[static_cast<std::size_t>(r)];
    for (Microbatch n = 0; n < shape.microbatches; ++n) {
      const std::int64_t base =
          3 * (std::int64_t{group} * shape.chunks * (n / group) + n % group) + r;
      const std::int64_t turn =
          base + chunk_offset(shape, last) + 3 * std::int64_t{shape.ranks - 1 - r} + 1;
      for (int c = 0; c < shape.chunks; ++c) {
        const Stage stage = c * shape.ranks + r;
        const std::int64_t back = turn + chunk_offset(shape, last - c);
        rank.push_back({base + chunk_offset(shape, c), compute_op(OpKind::forward, stage, n)});
        rank.push_back({back, compute_op(OpKind::backward_input, stage, n)});
        rank.push_back({back + 1, compute_op(OpKind::backward_weight, stage, n)});
      }
    }
  }
  return order_by_slot(std::move(ranks));
}

std::optional<std::string> refuse(const Shape& shape) {
  if (shape.group_size <= shape.ranks) return std::nullopt;
  return fmt::format(
      "group-interleaved takes groups of at most p microbatches; group_size {} is more than p = "
      "{}: use "
      "{} or less, or leave it out for {}",
      shape.group_size, shape.ranks, shape.ranks, default_group(shape.ranks));
}

}  // namespace

Family group_interleaved() {
  return {.name = "group-interleaved",
          .title = "group-interleaved",
          .aliases = {"group-interleaved-1f1b"},
          .summary = "Interleaving in groups smaller than p: less memory, some bubble.",
          .constraints = "group_size <= p, default ceil(p/2)",
          .formula_text = "",
          .source =
              "zero-bubble building block; Pipeline Parallelism with Controllable Memory, arXiv "
              "2405.15362",
          .default_chunks = 2,
          .takes_groups = true,
          .takes_chunks = true,
          .splits_backward = true,
          .refuse = refuse,
          .generate = generate_grouped};
}

}  // namespace counterflow
