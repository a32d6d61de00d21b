#pragma once

#include <string>
#include <string_view>

namespace counterflow {

// Base64 (RFC 4648) with padding. O(size).
[[nodiscard]] std::string base64(std::string_view bytes);

}  // namespace counterflow
