#pragma once

#include <string>
#include <vector>

#include "scheduler/ir/units.h"

namespace counterflow {

struct Tick {
  Time at{0};
  std::string label;  // "150"; the last one names the unit: "200 ms"
};

// Round instants from `begin` to `end`, both relative to the origin: about `wanted` of them, a step
// of 1, 2 or 5 times a power of ten apart.
[[nodiscard]] std::vector<Tick> ticks(Time begin, Time end, int wanted);

}  // namespace counterflow
