#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/ir/program.h"
#include "scheduler/ir/timeline.h"

namespace counterflow {

// How long instructions took by themselves: a compute from begin to end; a transfer or collective
// from when the last rank it needs had come, so that none is charged with another's delay.
class OwnTimes {
 public:
  // O(instructions). The program must outlive it.
  explicit OwnTimes(const Program& program);

  // [rank][instruction] of a timeline of this program.
  [[nodiscard]] std::vector<std::vector<Time>> of(const Timeline& timeline) const;

 private:
  struct Place {
    std::uint32_t rank = 0;
    std::uint32_t instruction = 0;
  };
  // Instruction `at` cannot end before `other` has begun.
  struct Need {
    Place at;
    Place other;
  };
  const Program& program_;
  std::vector<Need> needs_;
};

}  // namespace counterflow
