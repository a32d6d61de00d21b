#include "scheduler/graph/recordings.h"

#include <algorithm>

namespace counterflow {

Recordings::Recordings(const RankProgram& rank) : first_(rank.events + std::size_t{1}) {
  for (const Instruction& i : rank.instructions) {
    if (i.records < rank.events) ++first_[i.records + std::size_t{1}];
  }
  for (std::size_t event = 0; event < rank.events; ++event) first_[event + 1] += first_[event];
  entries_.resize(first_.back());
  std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
  for (std::uint32_t i = 0; i < rank.instructions.size(); ++i) {
    const Instruction& instruction = rank.instructions[i];
    if (instruction.records >= rank.events) continue;
    entries_[next[instruction.records]++] = {instruction.generation, i};
  }
}

std::uint32_t Recordings::among(std::uint32_t first, std::uint32_t end,
                                std::uint32_t generation) const {
  const auto found = std::lower_bound(
      entries_.begin() + first, entries_.begin() + end, generation,
      [](const Entry& entry, std::uint32_t wanted) { return entry.generation < wanted; });
  const bool exists = found != entries_.begin() + end && found->generation == generation;
  return exists ? found->instruction : kNone;
}

}  // namespace counterflow
