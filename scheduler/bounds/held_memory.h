#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "scheduler/problem/problem.h"

namespace counterflow {

// What one limit of a rank allows and what its stage copies hold of it: bytes, or counted
// activations; for a microbatch of factor 1.
struct HeldMemory {
  struct Part {
    Chunk chunk;
    std::int64_t whole = 0;  // from the begin of F to the end of I or B
    std::int64_t kept = 0;   // of it, to the end of W
  };
  Rank rank = 0;
  std::int64_t limit = 0;
  std::vector<Part> parts;      // stage copies whose memory outlives their F
  std::vector<Part> passing;    // those without a backward, which hold it while F runs
  std::vector<double> factors;  // of each microbatch; empty: all 1

  // What a microbatch holds of an amount, at least.
  [[nodiscard]] double at_least(std::int64_t amount, Microbatch microbatch) const {
    const auto whole = static_cast<double>(amount);
    return factors.empty() ? whole
                           : std::floor(whole * factors[static_cast<std::size_t>(microbatch)]);
  }
};

// Every limit of every rank. O(stages).
[[nodiscard]] std::vector<HeldMemory> held_memory(const Problem& problem);

}  // namespace counterflow
