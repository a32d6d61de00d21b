#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "report/palette.h"

namespace counterflow {

// SVG text under construction: a few shapes, coordinates rounded to a tenth of a unit.
class SvgCanvas {
 public:
  enum class Anchor : std::uint8_t { start, middle, end };

  SvgCanvas(double width, double height);

  // A rectangle, with a title that shows on hover unless it is empty.
  void rectangle(double x, double y, double width, double height, std::string_view fill,
                 std::string_view title = {});
  void text(double x, double y, std::string_view content, std::string_view css_class,
            Anchor anchor = Anchor::start);
  void line(double x1, double y1, double x2, double y2, std::string_view css_class);
  // `data` as SVG's path grammar has it.
  void path(std::string_view data, std::string_view css_class);

  // The finished document. The canvas is empty afterwards.
  [[nodiscard]] std::string take();

  // A coordinate as short as it can be: "12.5", "13".
  static void append_number(std::string& out, double value);

 private:
  void attribute(std::string_view name, double value);
  std::string out_;
};

}  // namespace counterflow
