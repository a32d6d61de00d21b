#pragma once

#include <cstddef>
#include <cstdint>

#include "scheduler/ir/units.h"

namespace counterflow {

// A run of the bytes of a vector.
struct Part {
  Bytes first;
  Bytes size;
  friend constexpr bool operator==(const Part&, const Part&) = default;
};

// Part k of n of a vector, as collectives cut it: between elements of 4 B; of what is no row of
// them, between bytes.
[[nodiscard]] constexpr Part part_of(Bytes whole, std::size_t k, std::size_t n) {
  constexpr std::int64_t kElement = 4;
  const std::int64_t unit = whole.value % kElement == 0 ? kElement : 1;
  const std::int64_t units = whole.value / unit;
  const auto cut = [&](std::size_t at) {
    // Without the product, which may be large.
    const auto count = static_cast<std::int64_t>(n);
    const auto number = static_cast<std::int64_t>(at);
    return (units / count * number + units % count * number / count) * unit;
  };
  return {Bytes{cut(k)}, Bytes{cut(k + 1) - cut(k)}};
}

}  // namespace counterflow
