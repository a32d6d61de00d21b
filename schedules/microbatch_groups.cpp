#include "schedules/microbatch_groups.h"

#include <fmt/core.h>

#include <algorithm>

namespace counterflow {
namespace {

bool group_size_is_legal(const Shape& shape, int size) {
  const auto [ranks, microbatches, chunks, group] = shape;
  if (size >= microbatches) return true;
  const int rest = microbatches % size;
  return size >= ranks && (rest == 0 || rest >= ranks);
}

}  // namespace

std::vector<int> microbatch_groups(const Shape& shape) {
  std::vector<int> sizes;
  if (shape.group_size > 0) {
    for (int left = shape.microbatches; left > 0; left -= sizes.back()) {
      sizes.push_back(std::min(left, shape.group_size));
    }
    return sizes;
  }
  const int count = std::max(1, shape.microbatches / shape.ranks);
  for (int i = 0; i < count; ++i) {
    sizes.push_back(shape.microbatches / count + (i < shape.microbatches % count ? 1 : 0));
  }
  return sizes;
}

std::optional<std::string> refuse_group_size(std::string_view family, const Shape& shape) {
  const int size = shape.group_size;
  if (size == 0 || group_size_is_legal(shape, size)) return std::nullopt;
  int above = size + 1;
  while (!group_size_is_legal(shape, above)) ++above;
  int below = size - 1;
  while (below > 0 && !group_size_is_legal(shape, below)) --below;
  const std::string choice =
      below > 0 ? fmt::format("{} or {}", below, above) : fmt::format("{}", above);
  return fmt::format(
      "{}: groups of {} do not work for p = {}, v = {}, m = {}: every group, the last one too, "
      "must "
      "hold at least p = {} microbatches or all of them; use group_size {}, or leave it out",
      family, size, shape.ranks, shape.chunks, shape.microbatches, shape.ranks, choice);
}

Turns interleaved_turns(const Shape& shape, Rank rank, int warm_up) {
  const auto total =
      static_cast<std::size_t>(shape.microbatches) * static_cast<std::size_t>(shape.chunks);
  Turns turns;
  turns.forwards.reserve(total);
  turns.backwards.reserve(total);
  Microbatch first = 0;
  for (const int size : microbatch_groups(shape)) {
    for (int chunk = 0; chunk < shape.chunks; ++chunk) {
      const Stage ascending = chunk * shape.ranks + rank;
      const Stage descending = (shape.chunks - 1 - chunk) * shape.ranks + rank;
      for (Microbatch i = first; i < first + size; ++i) {
        turns.forwards.push_back({ascending, i});
        turns.backwards.push_back({descending, i});
      }
    }
    first += size;
  }
  turns.warm_up = static_cast<int>(std::min(total, static_cast<std::size_t>(warm_up)));
  return turns;
}

int interleaving_lead(const Shape& shape) {
  return (shape.chunks - 1) * microbatch_groups(shape).front();
}

}  // namespace counterflow
