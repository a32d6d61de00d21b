#pragma once

#include <cstddef>
#include <string>
#include <string_view>

// Text from outside, before it is known to be text.
namespace counterflow {

// The length of the well-formed UTF-8 sequence at the front of `text`, which is not empty; 0 if
// none stands there. O(1).
[[nodiscard]] std::size_t utf8_sequence_length(std::string_view text);

// A value for a message: shortened, and what is no printable text made visible.
[[nodiscard]] std::string shown(std::string_view value);

}  // namespace counterflow
