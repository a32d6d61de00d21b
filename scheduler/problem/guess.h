#pragma once

#include <string_view>
#include <vector>

namespace counterflow {

// The entries of `known` that a wrong word was probably meant for. Those it is the beginning of, if
// they are at most three; else the nearest, if it is at most 1 + length/3 edits away (another case
// counts half an edit) and shares something with the word; else none. O(|word| |known|), the word
// cut to 64 characters.
[[nodiscard]] std::vector<std::string_view> guesses(std::string_view word,
                                                    const std::vector<std::string_view>& known);

}  // namespace counterflow
