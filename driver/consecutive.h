#pragma once

#include <span>

#include "driver/pipeline.h"

// Steps one behind the other, without a barrier between them.
namespace counterflow {

// A plan's program, checked for one step, for so many of them: `lowered` is that of all. Throws
// InfeasibleError where they have too many microbatches, or could last too long.
[[nodiscard]] Verdict check_in_steps(const Plan& plan, const Program& program, int steps,
                                     std::span<const Semantics> asked);

}  // namespace counterflow
