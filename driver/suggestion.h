#pragma once

#include <string>
#include <string_view>

namespace counterflow {

// ", did you mean '1f1b'?" if the guess is a likely misspelling of the word: at most 1 + length/3
// edits away, whatever the case; else "". O(|word| |guess|), the word cut to 64 characters.
[[nodiscard]] std::string did_you_mean(std::string_view word, std::string_view guess);

}  // namespace counterflow
