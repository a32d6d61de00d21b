#pragma once

#include <optional>

#include "scheduler/ir/units.h"
#include "scheduler/problem/jitter.h"
#include "scheduler/problem/problem.h"
#include "scheduler/problem/scenario.h"

// Problems whose costs stand for disturbances, so that a search for the shortest makespan on them
// finds orders that stand those. Only an estimate: a Problem has one cost for both copies of a
// bidirectional stage (here the mean of their ranks); where messages differ, all of their way
// counts as latency, and shared links are as they were.
namespace counterflow {

// With every op and message as long as it is to be expected, or nothing where that is its cost.
// What is slow for a part of a run of length `horizon` counts as evenly slower all of the time;
// failures count as nothing. O(stages + ranks^2).
[[nodiscard]] std::optional<Problem> with_expected_costs(const Problem& problem,
                                                         const Jitter& jitter,
                                                         const Scenario& scenario, Time horizon);

// With every message later by so many standard deviations of itself and of the op that makes it:
// orders that are good here leave slack between ranks. Nothing where nothing varies. O(stages +
// ranks^2).
[[nodiscard]] std::optional<Problem> with_late_messages(const Problem& problem,
                                                        const Jitter& jitter, double deviations);

}  // namespace counterflow
