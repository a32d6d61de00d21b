#pragma once

#include <string>
#include <vector>

#include "scheduler/ir/units.h"

// Figures as people read them. Data files carry whole nanoseconds and bytes instead.
namespace counterflow {

// "18.522 ms": the largest of ns, us, ms, s that leaves a whole part, four significant digits.
[[nodiscard]] std::string readable_time(Time time);
// "1.5 GiB"
[[nodiscard]] std::string readable_bytes(Bytes bytes);
// "8.47 %" of a fraction 0.0847
[[nodiscard]] std::string readable_share(double fraction);

// "0-3, 7" of ascending numbers; "-" of none.
[[nodiscard]] std::string readable_list(const std::vector<int>& numbers);

}  // namespace counterflow
