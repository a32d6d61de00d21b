#include "driver/suggestion.h"

#include <fmt/format.h>

#include <cstddef>

#include "scheduler/problem/config.h"

namespace counterflow {
namespace {

constexpr std::size_t kLongestWord = 64;

}  // namespace

std::string did_you_mean(std::string_view word, std::string_view guess) {
  word = word.substr(0, kLongestWord);
  if (guess.empty() || edit_distance(word, guess) > 2 * (1 + word.size() / 3)) return {};
  return fmt::format(", did you mean '{}'?", guess);
}

}  // namespace counterflow
