#pragma once

#include <string_view>

namespace counterflow {

// report/viewer as one HTML page, made by report/viewer/embed.cmake: {{title}} and {{data}} are
// left to fill in.
extern const std::string_view kViewerPage;

}  // namespace counterflow
