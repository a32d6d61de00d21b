#pragma once

#include <cstddef>
#include <vector>

namespace counterflow::testing {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kSanitized =
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool kSanitized = false;
#endif

// How many of a long test's `all` cases to try. Under a sanitizer, where each takes ten times as
// long, one in ten: what a sanitizer finds is a line of code that goes wrong, not a rare value.
// Counts that a test expects scale with it.
[[nodiscard]] constexpr int cases(int all) {
  return kSanitized ? (all + 9) / 10 : all;
}

// Of a list, all or every tenth.
template <typename T>
[[nodiscard]] std::vector<T> cases(const std::vector<T>& all) {
  std::vector<T> some;
  for (std::size_t i = 0; i < all.size(); i += kSanitized ? 10 : 1) some.push_back(all[i]);
  return some;
}

}  // namespace counterflow::testing
