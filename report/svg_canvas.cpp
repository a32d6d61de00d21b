#include "report/svg_canvas.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "report/markup.h"

namespace counterflow {
namespace {

constexpr std::string_view kStyle =
    "text{font:11px -apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif;fill:#3b4351}"
    ".title{font-size:17px;font-weight:600;fill:#161b24}"
    ".figures{font-size:12.5px}"
    ".rank{fill:#161b24}"
    ".quiet{fill:#7c8694;font-size:10px}"
    ".on-dark{fill:#fff;font-size:10px}"
    ".on-light{fill:#20262f;font-size:10px}"
    ".grid{stroke:#c9d0da;stroke-width:1;stroke-opacity:.55}"
    ".memory{fill:#8d7bc4;fill-opacity:.45}"
    ".limit{stroke:#b3261e;stroke-width:1;stroke-opacity:.7;stroke-dasharray:4 3}"
    ".peak{stroke:#6a57a8;stroke-width:3;stroke-linecap:round}";

}  // namespace

SvgCanvas::SvgCanvas(double width, double height) {
  fmt::format_to(std::back_inserter(out_),
                 R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0:.0f}" height="{1:.0f}" )"
                 "viewBox=\"0 0 {0:.0f} {1:.0f}\">\n<style>{2}</style>\n",
                 width, height, kStyle);
  rectangle(0, 0, width, height, "#fff");
}

void SvgCanvas::append_number(std::string& out, double value) {
  const auto tenths = static_cast<long long>(std::llround(value * 10));
  fmt::format_to(std::back_inserter(out), "{}{}", tenths < 0 ? "-" : "", std::llabs(tenths) / 10);
  if (tenths % 10 != 0) {
    fmt::format_to(std::back_inserter(out), ".{}", std::llabs(tenths) % 10);
  }
}

void SvgCanvas::attribute(std::string_view name, double value) {
  fmt::format_to(std::back_inserter(out_), R"( {}=")", name);
  append_number(out_, value);
  out_ += '"';
}

void SvgCanvas::rectangle(double x, double y, double width, double height, std::string_view fill,
                          std::string_view title) {
  out_ += "<rect";
  attribute("x", x);
  attribute("y", y);
  attribute("width", width);
  attribute("height", height);
  fmt::format_to(std::back_inserter(out_), R"( fill="{}")", fill);
  if (title.empty()) {
    out_ += "/>\n";
    return;
  }
  out_ += "><title>";
  append_escaped(out_, title);
  out_ += "</title></rect>\n";
}

void SvgCanvas::text(double x, double y, std::string_view content, std::string_view css_class,
                     Anchor anchor) {
  out_ += "<text";
  attribute("x", x);
  attribute("y", y);
  fmt::format_to(std::back_inserter(out_), R"( class="{}")", css_class);
  if (anchor == Anchor::middle) out_ += R"( text-anchor="middle")";
  if (anchor == Anchor::end) out_ += R"( text-anchor="end")";
  out_ += '>';
  append_escaped(out_, content);
  out_ += "</text>\n";
}

void SvgCanvas::line(double x1, double y1, double x2, double y2, std::string_view css_class) {
  out_ += "<line";
  attribute("x1", x1);
  attribute("y1", y1);
  attribute("x2", x2);
  attribute("y2", y2);
  fmt::format_to(std::back_inserter(out_), " class=\"{}\"/>\n", css_class);
}

void SvgCanvas::path(std::string_view data, std::string_view css_class) {
  fmt::format_to(std::back_inserter(out_), "<path d=\"{}\" class=\"{}\"/>\n", data, css_class);
}

std::string SvgCanvas::take() {
  out_ += "</svg>\n";
  return std::move(out_);
}

}  // namespace counterflow
