#include "scheduler/problem/text.h"

#include <fmt/format.h>

namespace counterflow {
namespace {

// Refuses overlong forms, surrogates and what is beyond U+10FFFF.
bool may_follow(unsigned char lead, unsigned char second) {
  switch (lead) {
    case 0xe0:
      return second >= 0xa0;
    case 0xed:
      return second <= 0x9f;
    case 0xf0:
      return second >= 0x90;
    case 0xf4:
      return second <= 0x8f;
    default:
      return true;
  }
}

}  // namespace

std::size_t utf8_sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0U) != 0x80) return 0;
  }
  return may_follow(lead, byte(1)) ? length : 0;
}

std::string shown(std::string_view value) {
  constexpr std::size_t kLongest = 60;
  std::string text;
  for (std::size_t i = 0; i < value.size();) {
    if (i >= kLongest) return text + "...";
    const auto byte = static_cast<unsigned char>(value[i]);
    const std::size_t length = utf8_sequence_length(value.substr(i));
    if (length == 0 || byte < 0x20 || byte == 0x7f) {
      text += fmt::format("\\x{:02x}", byte);
      ++i;
    } else {
      text += value.substr(i, length);
      i += length;
    }
  }
  return text.empty() ? "''" : text;
}

}  // namespace counterflow
