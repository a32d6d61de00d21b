#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "scheduler/ir/units.h"

namespace counterflow::exec {

// What a rank is about to run, as it says before the first step.
struct Intent {
  std::uint64_t program = 0;  // hash()
  std::string rules;          // "3 steps under 'gloo'"
  friend bool operator==(const Intent&, const Intent&) = default;
};

struct Disagreement {
  Rank culprit = 0;
  std::string reason;  // who is about to run what
};

// Whether all ranks are about to run the same, [rank]. If not, the culprit is the first rank that
// is not with most of them, or not with rank 0 where as many are; so all ranks name the same one.
// O(ranks * different intents).
[[nodiscard]] std::optional<Disagreement> disagreement(std::span<const Intent> intents);

}  // namespace counterflow::exec
