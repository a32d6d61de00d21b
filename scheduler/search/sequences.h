#pragma once

#include <vector>

#include "scheduler/problem/problem.h"

namespace counterflow {

// Orders in which unequal microbatches may enter, besides the given one: long ones first, short
// ones first, long and short in turn; [candidate][direction]. None where microbatches are equal.
[[nodiscard]] std::vector<std::vector<std::vector<Microbatch>>> microbatch_sequences(
    const Problem& problem);

}  // namespace counterflow
