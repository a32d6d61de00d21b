#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/ir/op.h"
#include "scheduler/ir/schedule.h"

// Families defined by a grid of equal time slots: where each op stands, and the order follows.
namespace counterflow {

struct PlacedOp {
  std::int64_t slot = 0;
  Op op;
};

// The ops of each rank in the order of their slots, which are distinct within a rank.
// O(ops log ops).
[[nodiscard]] Schedule order_by_slot(std::vector<std::vector<PlacedOp>> ranks);

}  // namespace counterflow
