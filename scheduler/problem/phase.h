#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "scheduler/ir/units.h"

namespace counterflow {

// What a pass over the stages is for.
enum class PhaseKind : std::uint8_t {
  train,     // forward and backward
  eval,      // forward only: a loss to look at
  log_prob,  // forward only: log-probabilities, of a policy or of a reference
};
inline constexpr std::array kPhaseKinds = {PhaseKind::train, PhaseKind::eval, PhaseKind::log_prob};

// As configs write it.
[[nodiscard]] constexpr std::string_view name(PhaseKind kind) {
  if (kind == PhaseKind::train) return "train";
  return kind == PhaseKind::eval ? "eval" : "log-prob";
}

// One of several passes of a step: microbatches first..first+count-1, those of the phase after it
// follow. On every rank all of a phase stands before all of the next.
struct Phase {
  PhaseKind kind = PhaseKind::train;
  Microbatch first = 0;
  int count = 0;

  [[nodiscard]] constexpr bool trains() const { return kind == PhaseKind::train; }
  friend constexpr bool operator==(const Phase&, const Phase&) = default;
};

}  // namespace counterflow
