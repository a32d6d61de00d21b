#pragma once

#include <string_view>

#include "report/drawing.h"
#include "report/svg_canvas.h"

namespace counterflow {

// Instants to horizontal positions.
struct TimeScale {
  Time begin{0};
  double left = 0;
  double per_nanosecond = 0;
  [[nodiscard]] double x(Time at) const {
    return left + per_nanosecond * static_cast<double>((at - begin).count());
  }
};

inline constexpr std::string_view kIdleFill = "#eceff3";

struct SvgLaneStyle {
  double height = 0;
  double right = 0;      // where the lane ends
  double narrowest = 0;  // neighbours narrower than this are drawn as one, in their mean colour
  bool with_titles = false;
};

// The compute of one rank, its top at y.
void draw_lane(SvgCanvas& canvas, const Lane& lane, const TimeScale& scale,
               const SvgLaneStyle& style, double y);

struct Strip {
  double y = 0;
  double height = 0;
};

// The memory of one rank over time, `most` being the full height of the strip: limit and peak
// marked.
void draw_memory(SvgCanvas& canvas, const Lane& lane, const TimeScale& scale, Time end, Bytes most,
                 Strip strip);

}  // namespace counterflow
