#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "scheduler/search/model.h"

namespace counterflow {

// What the memory of each rank must hold whatever the order: the most that one microbatch alone
// holds there. O(lanes of a rank squared * microbatches that differ).
[[nodiscard]] std::vector<SearchModel::Amount> least_memory(const SearchModel& model);

// A rank whose limit is below that.
struct MemoryShortage {
  Rank rank = 0;
  int resource = 0;  // 0: bytes beside the static memory, 1: activations
  std::int64_t needed = 0;
  std::int64_t limit = 0;
};
// All there are, by rank.
[[nodiscard]] std::vector<MemoryShortage> memory_shortages(const SearchModel& model);
// Why no order fits: each of these ranks with what it needs and what it may hold (of many the first
// ones), and the limits to raise.
[[nodiscard]] std::string shortage_text(const Problem& problem,
                                        std::span<const MemoryShortage> shortages);

}  // namespace counterflow
