#include "scheduler/problem/guess.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "scheduler/problem/config.h"

namespace counterflow {

std::vector<std::string_view> guesses(std::string_view word,
                                      const std::vector<std::string_view>& known) {
  constexpr std::size_t kLongestWord = 64;
  constexpr std::size_t kMostBegun = 3;
  word = word.substr(0, kLongestWord);
  if (word.empty() || known.empty()) return {};
  std::vector<std::string_view> begun;
  std::ranges::copy_if(known, std::back_inserter(begun),
                       [&](std::string_view each) { return each.starts_with(word); });
  if (!begun.empty() && begun.size() <= kMostBegun) return begun;
  const std::string_view best = nearest(word, known);
  const std::size_t half_edits = edit_distance(word, best);
  if (half_edits > 2 * (1 + word.size() / 3) || half_edits >= 2 * word.size()) return {};
  return {best};
}

}  // namespace counterflow
