#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "schedules/family.h"

// Shared by the families on the bidirectional placement.
namespace counterflow {

// The microbatches of one direction: the first half of all, rounded up, in direction 0, the rest
// in 1.
struct Direction {
  Microbatch first = 0;
  int count = 0;
};
[[nodiscard]] constexpr Direction direction_of(int microbatches, int direction) {
  const int ahead = (microbatches + 1) / 2;
  return direction == 0 ? Direction{0, ahead} : Direction{ahead, microbatches - ahead};
}

// Why this number of ranks is refused: two copies mirrored onto one another need an even number.
[[nodiscard]] std::optional<std::string> refuse_odd_ranks(std::string_view family,
                                                          const Shape& shape);

}  // namespace counterflow
