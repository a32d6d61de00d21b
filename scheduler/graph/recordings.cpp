#include "scheduler/graph/recordings.h"

#include <algorithm>
#include <cstddef>

namespace counterflow {

Recordings::Recordings(const RankProgram& rank)
    : rank_(rank), first_(rank.events + std::size_t{1}) {
  for (const Instruction& i : rank.instructions) {
    if (i.records < rank.events) ++first_[i.records + std::size_t{1}];
  }
  for (std::size_t event = 0; event < rank.events; ++event) first_[event + 1] += first_[event];
  recorders_.resize(first_.back());
  std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
  for (std::uint32_t i = 0; i < rank.instructions.size(); ++i) {
    const std::uint32_t event = rank.instructions[i].records;
    if (event < rank.events) recorders_[next[event]++] = i;
  }
}

std::uint32_t Recordings::recorder(EventWait wait) const {
  if (wait.event >= rank_.events) return kNone;
  // Generations of an event ascend in issue order.
  const auto begin = recorders_.begin() + first_[wait.event];
  const auto end = recorders_.begin() + first_[wait.event + std::size_t{1}];
  const auto found = std::lower_bound(begin, end, wait.generation,
                                      [this](std::uint32_t i, std::uint32_t generation) {
                                        return rank_.instructions[i].generation < generation;
                                      });
  const bool exists = found != end && rank_.instructions[*found].generation == wait.generation;
  return exists ? *found : kNone;
}

}  // namespace counterflow
