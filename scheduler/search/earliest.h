#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "scheduler/search/model.h"

namespace counterflow {

// A time for each of some, and who has the earliest. To set one is a store; who is asked looks at
// those blocks again in which something was set, and at the earliest of each block. Which one wins
// is hard to foretell, so nothing branches on it: for tens of ranks faster than any heap.
class Earliest {
 public:
  static constexpr std::int64_t kNever = SearchModel::kUnlimited;

  explicit Earliest(std::size_t count)
      : blocks_((count + kBlock - 1) / kBlock), times_(count, kNever) {}

  // Nobody has a time.
  void clear() {
    for (std::int64_t& each : times_) each = kNever;
    for (Block& each : blocks_) each.changed = true;
  }
  void set(std::uint32_t who, std::int64_t time) {
    times_[who] = time;
    blocks_[who / kBlock].changed = true;
  }
  [[nodiscard]] std::int64_t time(std::uint32_t who) const { return times_[who]; }
  // Of equal ones the lowest. O(count / 16 + 16 for every changed block).
  [[nodiscard]] std::uint32_t first() {
    std::uint32_t first = 0;
    std::int64_t earliest = kNever;
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      Block& block = blocks_[b];
      if (block.changed) {
        block.first = earliest_of(static_cast<std::uint32_t>(b * kBlock));
        block.changed = false;
      }
      const std::int64_t time = times_[block.first];
      first = time < earliest ? block.first : first;
      earliest = time < earliest ? time : earliest;
    }
    return first;
  }

 private:
  static constexpr std::uint32_t kBlock = 16;
  struct Block {
    std::uint32_t first = 0;  // unless something changed
    bool changed = true;
  };

  [[nodiscard]] std::uint32_t earliest_of(std::uint32_t begin) const {
    std::uint32_t first = begin;
    std::int64_t earliest = times_[begin];
    const auto end = std::min(begin + kBlock, static_cast<std::uint32_t>(times_.size()));
    for (std::uint32_t who = begin + 1; who < end; ++who) {
      const std::int64_t time = times_[who];
      first = time < earliest ? who : first;
      earliest = time < earliest ? time : earliest;
    }
    return first;
  }

  std::vector<Block> blocks_;
  std::vector<std::int64_t> times_;  // [who]
};

}  // namespace counterflow
