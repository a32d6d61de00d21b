#pragma once

#include <cstdint>
#include <optional>

#include "schedules/family.h"

// The terms of the published formulas, where a problem has them.
namespace counterflow {

// What the formulas speak of: p equal ranks of equal stages, one cost each, one latency. Durations
// are those of one stage, so a formula "/v" in units of a rank's share has lost its division here.
struct EqualStages {
  int ranks = 0;
  int microbatches = 0;
  int chunks = 1;
  Time forward{0};
  Time input{0};
  Time weight{0};
  Time latency{0};

  [[nodiscard]] Time backward() const { return input + weight; }
};

// A chain of equal stages that are all trained, all microbatches alike, every hop with the same
// latency and no bandwidth limit; else nothing. O(S).
[[nodiscard]] std::optional<EqualStages> equal_stages(const Problem& problem);
// The same, for formulas of an uncut backward: nothing if the problem asks for I and W.
[[nodiscard]] std::optional<EqualStages> equal_stages_full_backward(const Problem& problem);

// The one cost of F fused with B over all pairs a rank may form (of two different chunks, or also
// of one chunk with itself); nothing if they differ. Stages are equal. O(S v).
enum class PairsOf : std::uint8_t { different_chunks, any_chunks };
[[nodiscard]] std::optional<Time> common_pair_cost(const Problem& problem, PairsOf pairs);

}  // namespace counterflow
