#pragma once

#include <string>
#include <string_view>

namespace counterflow {

// The gzip file (RFC 1952) that holds `data`: no name, no time, so the same bytes out for the same
// bytes in. O(size).
[[nodiscard]] std::string gzip(std::string_view data);

}  // namespace counterflow
