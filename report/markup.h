#pragma once

#include <string>
#include <string_view>

namespace counterflow {

// Appends text as SVG and HTML take it between tags or inside double quotes.
void append_escaped(std::string& out, std::string_view text);

}  // namespace counterflow
