#include "report/markup.h"

namespace counterflow {

void append_escaped(std::string& out, std::string_view text) {
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        // XML has no way to write the other control characters.
        if (static_cast<unsigned char>(c) >= 0x20) out += c;
    }
  }
}

}  // namespace counterflow
