#pragma once

#include <vector>

#include "scheduler/ir/data_type.h"
#include "scheduler/ir/units.h"

namespace counterflow {

struct Problem;

// How messages between ranks travel. Their elements are FP32; `bytes`: as they are.
struct Compression {
  DataType activations = DataType::bytes;
  DataType gradients = DataType::bytes;
  double rate = 0;  // bytes of FP32 a second that a rank packs or unpacks; 0: that takes no time

  [[nodiscard]] bool any() const { return is_packed(activations) || is_packed(gradients); }
};

// What packing and unpacking add to the F and to the gradient op (B or I) of a stage.
struct PackingCost {
  Time forward{0};
  Time gradient{0};
};

// [stage] For each message that a copy of the stage sends to another rank or gets from there, its
// size in memory by the rate. Where copies differ in that, what the busier one would need.
// O(edges).
[[nodiscard]] std::vector<PackingCost> packing_costs(const Problem& problem);

// The problem with these in its costs, of ops and of pairs. To be applied once, when all else is
// known. What a microbatch's factor makes of an op it makes of this part too.
[[nodiscard]] Problem with_packing_costs(Problem problem);

}  // namespace counterflow
