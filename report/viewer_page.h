#pragma once

#include <string_view>

namespace counterflow {

// report/viewer as one HTML page, made by report/viewer/embed.cmake: {{title}}, {{summary}},
// {{head}} and {{columns}} are left to fill in, in this order.
extern const std::string_view kViewerPage;

}  // namespace counterflow
