#pragma once

#include <optional>

#include "report/diagnosis.h"
#include "report/expected_messages.h"
#include "report/flight_matches.h"

namespace counterflow {

// From the earliest entry that does not end along who waits for whom, to a rank that holds up the
// others and is held up by nobody, to a message that was lost, or round a cycle. Nothing where all
// that is open may be under way. `expected` may be null; then an open receive posted ahead counts
// as holding back what its rank has not posted. O(open entries * what the Program's rank has).
[[nodiscard]] std::optional<Finding> first_wait(const FlightMatches& matches,
                                                const ExpectedMessages* expected);

}  // namespace counterflow
