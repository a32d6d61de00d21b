#pragma once

#include <cstddef>

namespace counterflow::testing {

// How often this executable has allocated, but for over-aligned types.
[[nodiscard]] std::size_t allocations();

}  // namespace counterflow::testing
