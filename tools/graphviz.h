#pragma once

#include <string>

namespace counterflow {

// Draws a DOT graph as SVG with Graphviz's `dot`. Throws EnvironmentError where it is not installed
// or fails.
[[nodiscard]] std::string render_svg(const std::string& dot);

}  // namespace counterflow
