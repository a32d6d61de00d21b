#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "scheduler/ir/op.h"
#include "scheduler/ir/units.h"

namespace counterflow::reference {

// A weight gradient that was not finite: W of a stage for a microbatch, on the rank that holds it.
struct NotFinite {
  Stage stage = 0;
  Microbatch microbatch = 0;
  Rank rank = 0;

  // In the order in which one process comes to them: by microbatch, from the last stage back.
  [[nodiscard]] bool before(const NotFinite& other) const {
    return microbatch != other.microbatch ? microbatch < other.microbatch : stage > other.stage;
  }
  friend bool operator==(const NotFinite&, const NotFinite&) = default;
};

// An optimizer step that was not taken, because gradients were not finite.
struct SkippedStep {
  int step = 0;
  // With the norm of all gradients every stage skips it, on every rank; without, only those whose
  // own gradients are not finite.
  bool whole = true;
  std::vector<Stage> stages;  // that skipped it, ascending
  // None where each was finite, and only their sums, or the squares of the norm, were not.
  std::optional<NotFinite> first;

  friend bool operator==(const SkippedStep&, const SkippedStep&) = default;
};
// "step 3: gradients not finite, first seen by rank 2 in W of stage 2 for microbatch 1; step
// skipped"
[[nodiscard]] std::string to_string(const SkippedStep& skipped);

[[nodiscard]] inline bool all_finite(std::span<const float> values) {
  return std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
}

}  // namespace counterflow::reference
