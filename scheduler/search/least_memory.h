#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "scheduler/search/model.h"

namespace counterflow {

// What the memory of each rank must hold whatever the order: the most that one microbatch alone
// holds there. O(lanes of a rank squared * microbatches that differ).
[[nodiscard]] std::vector<SearchModel::Amount> least_memory(const SearchModel& model);

// The first rank whose limit is below that, if any.
struct MemoryShortage {
  Rank rank = 0;
  int resource = 0;  // 0: bytes beside the static memory, 1: activations
  std::int64_t needed = 0;
  std::int64_t limit = 0;
};
[[nodiscard]] std::optional<MemoryShortage> memory_shortage(const SearchModel& model);

}  // namespace counterflow
