#pragma once

#include <optional>
#include <vector>

#include "report/diagnosis.h"
#include "report/expected_messages.h"
#include "report/flight_matches.h"

namespace counterflow {

// What does not agree in the records of all ranks: an order that is not the Program's (of records
// that its own executor did not make), the earliest message whose ends differ, the earliest
// collective that members call differently. `expected` may be null.
[[nodiscard]] std::vector<Finding> differences(const FlightMatches& matches,
                                               const ExpectedMessages* expected);

// Of the two ends of a message the one whose size is not the Program's, if one is.
[[nodiscard]] std::optional<Rank> who_deviates(const FlightMatches& matches,
                                               const ExpectedMessages* expected,
                                               FlightMatches::Ref send, FlightMatches::Ref receive);

}  // namespace counterflow
