#include "driver/suggestion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "scheduler/problem/guess.h"

namespace counterflow {

std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& known) {
  const std::vector<std::string_view> likely = guesses(word, known);
  if (likely.empty()) return {};
  return fmt::format(", did you mean '{}'?", fmt::join(likely, "' or '"));
}

}  // namespace counterflow
