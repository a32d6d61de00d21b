#include <string>
#include <string_view>

#include "report/compare.h"
#include "report/draw.h"
#include "report/json/writer.h"
#include "report/markup.h"
#include "report/palette.h"
#include "report/viewer_page.h"

namespace counterflow {
namespace {

constexpr OpKind kLastKind = OpKind::reduce_gradients;

void append_palette(std::string& out) {
  json::Object palette(out);
  for (int i = 0; i <= static_cast<int>(kLastKind); ++i) {
    const auto kind = static_cast<OpKind>(i);
    palette.add(token(kind), hex(base_colour(kind)));
  }
  palette.close();
}

// What the page reads: {"palette": {token: colour}, "runs": [{"name", "timeline": timeline.json}]}.
void append_data(std::string& out, std::span<const NamedRun> runs) {
  json::Object data(out);
  append_palette(data.member("palette"));
  json::Array array(data.member("runs"));
  for (const NamedRun& run : runs) {
    json::Object entry(array.element());
    entry.add("name", run.name);
    entry.member("timeline") += timeline_json(run.drawing);
    entry.close();
  }
  array.close();
  data.close();
}

std::string page(std::string_view title, std::span<const NamedRun> runs) {
  constexpr std::string_view kTitle = "{{title}}";
  constexpr std::string_view kData = "{{data}}";
  const std::size_t title_at = kViewerPage.find(kTitle);
  const std::size_t data_at = kViewerPage.find(kData);
  std::string out(kViewerPage.substr(0, title_at));
  append_escaped(out, title);
  const std::size_t between = title_at + kTitle.size();
  out += kViewerPage.substr(between, data_at - between);
  append_data(out, runs);
  out += kViewerPage.substr(data_at + kData.size());
  return out;
}

}  // namespace

std::string timeline_html(const DrawContext& run) {
  const NamedRun named{run.report.schedule, make_drawing(run)};
  return page(named.name + " - counterflow", {&named, 1});
}

std::string compare_html(std::span<const NamedRun> runs) {
  std::string title = "compare";
  for (const NamedRun& run : runs) title += ' ' + run.name;
  return page(title + " - counterflow", runs);
}

}  // namespace counterflow
