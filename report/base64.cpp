#include "report/base64.h"

#include <cstddef>
#include <cstdint>

namespace counterflow {

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const auto byte = [&](std::size_t k) {
      return i + k < bytes.size() ? static_cast<std::uint8_t>(bytes[i + k]) : 0U;
    };
    const std::uint32_t triple = byte(0) << 16 | byte(1) << 8 | byte(2);
    for (std::size_t digit = 0; digit < 4; ++digit) {
      const bool is_data = i + digit <= bytes.size();
      out += is_data ? kDigits[triple >> (18 - 6 * digit) & 63] : '=';
    }
  }
  return out;
}

}  // namespace counterflow
