#include <string>
#include <string_view>
#include <utility>

#include "report/base64.h"
#include "report/columns.h"
#include "report/compare.h"
#include "report/draw.h"
#include "report/gzip.h"
#include "report/json/writer.h"
#include "report/markup.h"
#include "report/palette.h"
#include "report/report_json.h"
#include "report/viewer_page.h"

namespace counterflow {
namespace {

// The token of every kind, by its number in the columns, and its colour.
void append_kinds(std::string& out) {
  json::Array kinds(out);
  for (int i = 0; i <= static_cast<int>(kLastOpKind); ++i) {
    const auto kind = static_cast<OpKind>(i);
    json::Array(kinds.element()).add(token(kind)).add(hex(base_colour(kind))).close();
  }
  kinds.close();
}

void append_ranks(std::string& out, const Drawing& drawing) {
  json::Array ranks(out);
  for (const Lane& lane : drawing.lanes) {
    json::Object rank(ranks.element());
    append_streams(rank.member("streams"), lane.streams);
    if (lane.memory_limit) rank.add("memory_limit_bytes", lane.memory_limit->value);
    rank.close();
  }
  ranks.close();
}

// What the page reads beside the columns: {"kinds": [[token, colour]], "runs": [{"name", "report",
// "ranks": [{"streams", "memory_limit_bytes"}]}]}.
std::string head(std::span<const NamedRun> runs) {
  std::string out;
  json::Object data(out);
  append_kinds(data.member("kinds"));
  json::Array array(data.member("runs"));
  for (const NamedRun& run : runs) {
    json::Object entry(array.element());
    entry.add("name", run.name);
    append_json(entry.member("report"), run.drawing.report);
    append_ranks(entry.member("ranks"), run.drawing);
    entry.close();
  }
  array.close();
  data.close();
  return out;
}

std::string columns(std::span<const NamedRun> runs) {
  std::string out;
  for (const NamedRun& run : runs) out += encode_columns(run.drawing);
  return base64(gzip(out));
}

std::string escaped(std::string_view text) {
  std::string out;
  append_escaped(out, text);
  return out;
}

// What a reader without scripts sees.
std::string plain(std::span<const NamedRun> runs) {
  return escaped(runs.size() == 1 ? summary(runs.front().drawing.report) : compare_table(runs));
}

std::string page(std::string_view title, std::span<const NamedRun> runs) {
  const std::pair<std::string_view, std::string> values[] = {
      {"{{title}}", escaped(title)},
      {"{{summary}}", plain(runs)},
      {"{{head}}", head(runs)},
      {"{{columns}}", columns(runs)},
  };
  std::string out;
  std::string_view rest = kViewerPage;
  for (const auto& [place, value] : values) {  // in the order of the page
    const std::size_t at = rest.find(place);
    out += rest.substr(0, at);
    out += value;
    rest.remove_prefix(at + place.size());
  }
  out += rest;
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
