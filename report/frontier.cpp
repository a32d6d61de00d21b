#include "report/frontier.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "report/format.h"

namespace counterflow {
namespace {

double milliseconds(Time time) {
  return static_cast<double>(time.count()) * 1e-6;
}

double gap(const FrontierPoint& point) {
  if (point.lower_bound.count() == 0) return 0;
  return static_cast<double>(point.makespan.count()) /
             static_cast<double>(point.lower_bound.count()) -
         1;
}

std::string limit_text(std::int64_t limit, bool in_bytes) {
  if (!in_bytes) return fmt::format("{}", limit);
  constexpr double kMiB = 1024.0 * 1024.0;
  if (limit < 1024 * 1024) return fmt::format("{} B", limit);
  return fmt::format("{:.1f} MiB", static_cast<double>(limit) / kMiB);
}

// ---- the picture ----------------------------------------------------------------------------

constexpr double kWidth = 720;
constexpr double kHeight = 400;
constexpr double kLeft = 90;
constexpr double kRight = 30;
constexpr double kTop = 40;
constexpr double kBottom = 60;

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
    const double margin = std::max((high_ - low_) * 0.08, high_ * 0.01);
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
  [[nodiscard]] double low() const { return low_; }
  [[nodiscard]] double high() const { return high_; }

 private:
  std::int64_t first_ = 0;
  std::int64_t last_ = 1;
  double low_ = 0;
  double high_ = 0;
};

// From the first point that has a time; "" if none has.
template <typename TimeOf>
std::string steps(const Frontier& frontier, const Axes& axes, TimeOf time_of) {
  std::string path;
  for (const FrontierPoint& point : frontier.points) {
    const std::optional<Time> time = time_of(point);
    if (!time) continue;
    const double x = axes.x(point.limit);
    const double y = axes.y(milliseconds(*time));
    path +=
        path.empty() ? fmt::format("M{:.1f} {:.1f}", x, y) : fmt::format(" H{:.1f} V{:.1f}", x, y);
  }
  return path.empty() ? path : path + fmt::format(" H{:.1f}", kWidth - kRight);
}

template <typename TimeOf>
std::string line(const Frontier& frontier, const Axes& axes, std::string_view stroke,
                 TimeOf time_of) {
  const std::string path = steps(frontier, axes, time_of);
  if (path.empty()) return "";
  return fmt::format("<path d=\"{}\" fill=\"none\" {}/>\n", path, stroke);
}

std::string label(double x, double y, std::string_view anchor, std::string_view text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                     text);
}

// "; stages 0-2 recompute, 3 offload"
std::string ways(const FrontierPoint& point) {
  std::string text;
  if (!point.recompute.empty()) {
    text += fmt::format("; recompute: stages {}", readable_list(point.recompute));
  }
  if (!point.offload.empty()) {
    text += fmt::format("; offload: stages {}", readable_list(point.offload));
  }
  return text;
}

// "3r 1o", "" where all stages keep their activations.
std::string counts(const FrontierPoint& point) {
  std::string text;
  if (!point.recompute.empty()) text += fmt::format("{}r", point.recompute.size());
  if (!point.offload.empty()) {
    text += fmt::format("{}{}o", text.empty() ? "" : " ", point.offload.size());
  }
  return text;
}

}  // namespace

std::string frontier_table(const Frontier& frontier) {
  std::string table = fmt::format("{:>14} {:>14} {:>14} {:>9} {:>9}",
                                  frontier.in_bytes ? "memory limit" : "activations", "peak",
                                  "makespan ms", "gap", "bubble");
  if (frontier.has_choices) {
    table += fmt::format(" {:>14}  {:<14} {}", "all kept ms", "recompute", "offload");
  }
  table += "\n";
  for (const FrontierPoint& point : frontier.points) {
    table += fmt::format("{:>14} {:>14} {:>14.3f} {:>7.2f} % {:>7.2f} %",
                         limit_text(point.limit, frontier.in_bytes),
                         limit_text(point.peak, frontier.in_bytes), milliseconds(point.makespan),
                         100 * gap(point), 100 * point.bubble_fraction);
    if (frontier.has_choices) {
      const std::string kept =
          point.all_kept ? fmt::format("{:.3f}", milliseconds(*point.all_kept)) : "does not fit";
      table += fmt::format(" {:>14}  {:<14} {}", kept, readable_list(point.recompute),
                           readable_list(point.offload));
    }
    table += "\n";
  }
  return table;
}

std::string frontier_json(const Frontier& frontier) {
  nlohmann::ordered_json root;
  root["schema_version"] = 1;
  root["resource"] = frontier.in_bytes ? "bytes" : "activations";
  root["points"] = nlohmann::ordered_json::array();
  for (const FrontierPoint& point : frontier.points) {
    nlohmann::ordered_json each;
    each["limit"] = point.limit;
    each["peak"] = point.peak;
    each["makespan_ns"] = point.makespan.count();
    each["lower_bound_ns"] = point.lower_bound.count();
    each["gap"] = gap(point);
    each["bubble_fraction"] = point.bubble_fraction;
    if (frontier.has_choices) {
      each["recompute"] = point.recompute;
      each["offload"] = point.offload;
      each["all_kept_ns"] = nullptr;
      if (point.all_kept) each["all_kept_ns"] = point.all_kept->count();
    }
    root["points"].push_back(std::move(each));
  }
  return root.dump(2) + "\n";
}

std::string frontier_svg(const Frontier& frontier) {
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"{0:.0f}\" height=\"{1:.0f}\" fill=\"#fff\"/>\n",
      kWidth, kHeight);
  if (frontier.points.empty()) return svg + "</svg>\n";
  const Axes axes(frontier);
  svg += fmt::format("<path d=\"M{0} {1} V{2} H{3}\" fill=\"none\" stroke=\"#444\"/>\n", kLeft,
                     kTop, kHeight - kBottom, kWidth - kRight);
  svg += label(kLeft, kTop - 14, "middle", "makespan, ms");
  svg += label((kLeft + kWidth - kRight) / 2, kHeight - 14, "middle",
               frontier.in_bytes ? "memory limit of a rank" : "activations a rank may hold");
  for (const double time : {axes.low(), (axes.low() + axes.high()) / 2, axes.high()}) {
    svg += label(kLeft - 8, axes.y(time) + 4, "end", fmt::format("{:.4g}", time));
  }
  const std::size_t step = std::max<std::size_t>(1, (frontier.points.size() + 5) / 6);
  for (std::size_t i = 0; i < frontier.points.size(); i += step) {
    const std::int64_t limit = frontier.points[i].limit;
    svg += label(axes.x(limit), kHeight - kBottom + 18, "middle",
                 limit_text(limit, frontier.in_bytes));
  }
  svg += line(frontier, axes, "stroke=\"#999\" stroke-dasharray=\"4 3\"",
              [](const FrontierPoint& point) { return std::optional(point.lower_bound); });
  if (frontier.has_choices) {
    svg += line(frontier, axes, "stroke=\"#c60\" stroke-width=\"2\"",
                [](const FrontierPoint& point) { return point.all_kept; });
  }
  svg += line(frontier, axes, "stroke=\"#0a6\" stroke-width=\"2\"",
              [](const FrontierPoint& point) { return std::optional(point.makespan); });
  for (const FrontierPoint& point : frontier.points) {
    svg += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\" fill=\"#0a6\"><title>{}: {:.3f} "
        "ms{}</title></circle>\n",
        axes.x(point.limit), axes.y(milliseconds(point.makespan)),
        limit_text(point.limit, frontier.in_bytes), milliseconds(point.makespan), ways(point));
    const std::string count = counts(point);
    if (count.empty()) continue;
    svg += label(axes.x(point.limit) + 6, axes.y(milliseconds(point.makespan)) - 7, "start", count);
  }
  svg += label(kWidth - kRight, kTop - 14, "end", "found (green line), lower bound (dashes)");
  if (frontier.has_choices) {
    svg += label(kWidth - kRight, kTop + 2, "end",
                 "with all activations kept (orange); 3r 1o: 3 stages recompute, 1 offloads");
  }
  return svg + "</svg>\n";
}

}  // namespace counterflow
