#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "scheduler/ir/program.h"

namespace counterflow {

// Which instruction of a rank makes the recording that a wait means.
class Recordings {
 public:
  // O(instructions).
  explicit Recordings(const RankProgram& rank);

  // Index of the instruction; kNone if there is no such recording. O(log generations).
  [[nodiscard]] std::uint32_t recorder(EventWait wait) const {
    if (std::size_t{wait.event} + 1 >= first_.size()) return kNone;
    const std::uint32_t first = first_[wait.event];
    const std::uint32_t end = first_[wait.event + std::size_t{1}];
    // Most events are recorded once.
    if (end - first != 1) return among(first, end, wait.generation);
    return entries_[first].generation == wait.generation ? entries_[first].instruction : kNone;
  }

 private:
  struct Entry {
    std::uint32_t generation = 0;
    std::uint32_t instruction = 0;
  };
  [[nodiscard]] std::uint32_t among(std::uint32_t first, std::uint32_t end,
                                    std::uint32_t generation) const;

  std::vector<std::uint32_t> first_;  // [event] into entries_, one more at the end
  std::vector<Entry> entries_;        // by event, then in issue order, so by generation
};

}  // namespace counterflow
