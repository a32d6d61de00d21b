#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/format.h"
#include "report/frontier.h"

namespace counterflow {
namespace {

constexpr double kWidth = 760;
constexpr double kHeight = 440;
constexpr double kLeft = 100;
constexpr double kRight = 40;
constexpr double kTop = 56;
constexpr double kBottom = 110;
constexpr double kLine = 17;  // from one row of text to the next

constexpr std::string_view kFound = "stroke=\"#0a6\" stroke-width=\"2\"";
constexpr std::string_view kAllKept = "stroke=\"#fa6\" stroke-width=\"5\"";
constexpr std::string_view kBound = "stroke=\"#777\" stroke-dasharray=\"4 3\"";

double milliseconds(Time time) {
  return static_cast<double>(time.count()) * 1e-6;
}

std::string limit_text(const Frontier& frontier, std::int64_t limit) {
  return frontier.in_bytes ? readable_bytes(Bytes{limit}) : fmt::format("{}", limit);
}

// 1, 2 or 5 times a power of ten, so that about five of them make the range.
double tick_step(double range) {
  const double about = range / 5;
  const double power = std::pow(10, std::floor(std::log10(about)));
  for (const double times : {1.0, 2.0, 5.0}) {
    if (about <= times * power) return times * power;
  }
  return 10 * power;
}

class Axes {
 public:
  explicit Axes(const Frontier& frontier) {
    first_ = frontier.points.front().limit;
    last_ = std::max(frontier.points.back().limit, first_ + 1);
    low_ = milliseconds(frontier.points.front().lower_bound);
    for (const FrontierPoint& point : frontier.points) {
      low_ = std::min(low_, milliseconds(point.lower_bound));
      high_ = std::max(high_, milliseconds(point.makespan));
      if (point.all_kept) high_ = std::max(high_, milliseconds(*point.all_kept));
    }
    const double margin = std::max({(high_ - low_) * 0.08, high_ * 0.01, 1e-6});
    low_ = std::max(0.0, low_ - margin);
    high_ += margin;
  }
  [[nodiscard]] double x(std::int64_t limit) const {
    return kLeft + static_cast<double>(limit - first_) / static_cast<double>(last_ - first_) *
                       (kWidth - kLeft - kRight);
  }
  [[nodiscard]] double y(double time) const {
    return kHeight - kBottom - (time - low_) / (high_ - low_) * (kHeight - kTop - kBottom);
  }
  [[nodiscard]] double y(Time time) const { return y(milliseconds(time)); }
  // Round times within the range, ascending.
  [[nodiscard]] std::vector<double> ticks() const {
    std::vector<double> ticks;
    const double step = tick_step(high_ - low_);
    for (double at = std::ceil(low_ / step); at * step <= high_; ++at) ticks.push_back(at * step);
    return ticks;
  }

 private:
  std::int64_t first_ = 0;
  std::int64_t last_ = 1;
  double low_ = 0;
  double high_ = 0;
};

std::string label(double x, double y, std::string_view anchor, std::string_view text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                     text);
}

std::string line(double from, double to, double y, std::string_view stroke) {
  return fmt::format("<line x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", from,
                     to, y, y, stroke);
}

// From the first point that has a time; "" if none has.
template <typename TimeOf>
std::string steps(const Frontier& frontier, const Axes& axes, std::string_view stroke,
                  TimeOf time_of) {
  std::string path;
  for (const FrontierPoint& point : frontier.points) {
    const std::optional<Time> time = time_of(point);
    if (!time) continue;
    const double x = axes.x(point.limit);
    const double y = axes.y(*time);
    path +=
        path.empty() ? fmt::format("M{:.1f} {:.1f}", x, y) : fmt::format(" H{:.1f} V{:.1f}", x, y);
  }
  if (path.empty()) return "";
  return fmt::format("<path d=\"{} H{:.1f}\" fill=\"none\" {}/>\n", path, kWidth - kRight, stroke);
}

std::string legend(const Frontier& frontier) {
  struct Entry {
    std::string_view stroke, text;
  };
  std::vector<Entry> entries{{kFound, "best found"}, {kBound, "lower bound"}};
  if (frontier.has_choices) {
    entries.insert(entries.begin() + 1, {kAllKept, "best with all activations kept"});
  }
  std::string svg;
  double x = kLeft;
  for (const Entry& entry : entries) {
    svg += line(x, x + 24, 22, entry.stroke);
    svg += label(x + 30, 26, "start", entry.text);
    x += 56 + 5.8 * static_cast<double>(entry.text.size());
  }
  return svg;
}

std::string time_axis(const Axes& axes) {
  std::string svg = label(kLeft - 8, kTop - 16, "end", "makespan, ms");
  for (const double time : axes.ticks()) {
    svg += line(kLeft, kWidth - kRight, axes.y(time), "stroke=\"#ddd\"");
    svg += label(kLeft - 8, axes.y(time) + 4, "end", fmt::format("{:.6g}", time));
  }
  return svg;
}

// Limits at as many points as there is room for, and below them how many stages do what.
std::string limit_axis(const Frontier& frontier, const Axes& axes) {
  constexpr std::size_t kMost = 8;
  double y = kHeight - kBottom + kLine;
  std::string svg;
  const auto row = [&](std::string_view head, auto text_of) {
    if (!head.empty()) svg += label(kLeft - 20, y, "end", head);
    const std::size_t step = (frontier.points.size() + kMost - 1) / kMost;
    for (std::size_t i = 0; i < frontier.points.size(); i += step) {
      const FrontierPoint& point = frontier.points[i];
      svg += label(axes.x(point.limit), y, "middle", text_of(point));
    }
    y += kLine;
  };
  const auto count = [](const std::vector<Stage>& stages) {
    return stages.empty() ? "-" : fmt::format("{}", stages.size());
  };
  row("", [&](const FrontierPoint& point) { return limit_text(frontier, point.limit); });
  if (frontier.has_choices) {
    row("recompute", [&](const FrontierPoint& point) { return count(point.recompute); });
    row("offload", [&](const FrontierPoint& point) { return count(point.offload); });
  }
  std::string what = frontier.in_bytes ? "memory limit of a rank" : "activations a rank may hold";
  if (frontier.has_choices) what += "; below it, how many stages recompute and offload";
  return svg + label((kLeft + kWidth - kRight) / 2, y + 8, "middle", what);
}

std::string title(const Frontier& frontier, const FrontierPoint& point) {
  std::string text =
      fmt::format("{}: {}", limit_text(frontier, point.limit), readable_time(point.makespan));
  if (frontier.has_choices) {
    text += point.all_kept ? fmt::format("; with all kept {}", readable_time(*point.all_kept))
                           : "; with all kept nothing fits";
  }
  if (!point.recompute.empty()) {
    text += fmt::format("; recompute: stages {}", readable_list(point.recompute));
  }
  if (!point.offload.empty()) {
    text += fmt::format("; offload: stages {}", readable_list(point.offload));
  }
  return text;
}

}  // namespace

std::string frontier_svg(const Frontier& frontier) {
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"{0:.0f}\" height=\"{1:.0f}\" fill=\"#fff\"/>\n",
      kWidth, kHeight);
  if (frontier.points.empty()) return svg + "</svg>\n";
  const Axes axes(frontier);
  svg += legend(frontier);
  svg += time_axis(axes);
  svg += limit_axis(frontier, axes);
  svg += fmt::format("<path d=\"M{0} {1} V{2} H{3}\" fill=\"none\" stroke=\"#444\"/>\n", kLeft,
                     kTop, kHeight - kBottom, kWidth - kRight);
  if (frontier.has_choices) {
    svg += steps(frontier, axes, kAllKept, [](const auto& point) { return point.all_kept; });
  }
  svg += steps(frontier, axes, kBound,
               [](const auto& point) { return std::optional(point.lower_bound); });
  svg += steps(frontier, axes, kFound,
               [](const auto& point) { return std::optional(point.makespan); });
  for (const FrontierPoint& point : frontier.points) {
    svg += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"#0a6\"><title>{}</title></circle>\n",
        axes.x(point.limit), axes.y(point.makespan), title(frontier, point));
  }
  return svg + "</svg>\n";
}

}  // namespace counterflow
