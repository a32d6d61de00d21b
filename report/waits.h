#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/ir/program.h"

namespace counterflow {

// Instruction `instruction` of a rank waits for instruction `on` of rank `rank`: for an event that
// one records, or, as a receive, for the send of its message. That it also follows the instruction
// before it on its stream goes without saying.
struct Wait {
  std::uint32_t instruction = 0;
  std::uint32_t rank = 0;
  std::uint32_t on = 0;
  friend bool operator==(const Wait&, const Wait&) = default;
};

// [rank], by ascending instruction. O(instructions).
[[nodiscard]] std::vector<std::vector<Wait>> waits_of(const Program& program);

}  // namespace counterflow
