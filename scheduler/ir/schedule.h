#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "scheduler/ir/op.h"

namespace counterflow {

// One position in a rank's order: a single op, or a forward fused with a backward (`second`). A
// fused pair begins when the inputs of both are there; the outputs of both leave when it ends.
struct Slot {
  Op first;
  Op second;

  [[nodiscard]] constexpr bool is_pair() const { return second.kind != OpKind::none; }
  friend constexpr bool operator==(const Slot&, const Slot&) = default;
};
static_assert(sizeof(Slot) == 16);

// A pipeline schedule: for each rank the order of its compute. It says nothing about communication,
// which a pass infers, nor about time, which follows from the costs.
struct Schedule {
  std::string name;                      // the family or file it came from
  std::vector<std::vector<Slot>> ranks;  // [rank][position]

  [[nodiscard]] std::size_t size() const {
    std::size_t total = 0;
    for (const auto& order : ranks) total += order.size();
    return total;
  }
};

}  // namespace counterflow
