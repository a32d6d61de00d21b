#include "schedules/bidirectional.h"

#include <fmt/core.h>

namespace counterflow {

std::optional<std::string> refuse_odd_ranks(std::string_view family, const Shape& shape) {
  if (shape.ranks % 2 == 0) return std::nullopt;
  const std::string choice = shape.ranks == 1
                                 ? std::string("2")
                                 : fmt::format("{} or {}", shape.ranks - 1, shape.ranks + 1);
  return fmt::format(
      "{} needs an even number of ranks, since rank r and rank p-1-r hold the same stages; {} is "
      "odd: "
      "use {}",
      family, shape.ranks, choice);
}

}  // namespace counterflow
