#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace counterflow {

// ", did you mean '1f1b'?" of the guesses among the known words (scheduler/problem/guess.h); "" if
// there are none.
[[nodiscard]] std::string did_you_mean(std::string_view word,
                                       const std::vector<std::string_view>& known);

}  // namespace counterflow
