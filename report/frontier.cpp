#include "report/frontier.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

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

template <typename TimeOf>
std::string steps(const Frontier& frontier, const Axes& axes, TimeOf time_of) {
  std::string path;
  for (const FrontierPoint& point : frontier.points) {
    const double x = axes.x(point.limit);
    const double y = axes.y(milliseconds(time_of(point)));
    path +=
        path.empty() ? fmt::format("M{:.1f} {:.1f}", x, y) : fmt::format(" H{:.1f} V{:.1f}", x, y);
  }
  return path + fmt::format(" H{:.1f}", kWidth - kRight);
}

std::string label(double x, double y, std::string_view anchor, std::string_view text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                     text);
}

}  // namespace

std::string frontier_table(const Frontier& frontier) {
  std::string table = fmt::format("{:>14} {:>14} {:>14} {:>9} {:>9}\n",
                                  frontier.in_bytes ? "memory limit" : "activations", "peak",
                                  "makespan ms", "gap", "bubble");
  for (const FrontierPoint& point : frontier.points) {
    table += fmt::format("{:>14} {:>14} {:>14.3f} {:>7.2f} % {:>7.2f} %\n",
                         limit_text(point.limit, frontier.in_bytes),
                         limit_text(point.peak, frontier.in_bytes), milliseconds(point.makespan),
                         100 * gap(point), 100 * point.bubble_fraction);
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
  svg += fmt::format(
      "<path d=\"{}\" fill=\"none\" stroke=\"#999\" stroke-dasharray=\"4 3\"/>\n",
      steps(frontier, axes, [](const FrontierPoint& point) { return point.lower_bound; }));
  svg +=
      fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"#0a6\" stroke-width=\"2\"/>\n",
                  steps(frontier, axes, [](const FrontierPoint& point) { return point.makespan; }));
  for (const FrontierPoint& point : frontier.points) {
    svg += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\" fill=\"#0a6\"><title>{}: {:.3f} "
        "ms</title></circle>\n",
        axes.x(point.limit), axes.y(milliseconds(point.makespan)),
        limit_text(point.limit, frontier.in_bytes), milliseconds(point.makespan));
  }
  svg += label(kWidth - kRight, kTop, "end", "found (line), lower bound (dashes)");
  return svg + "</svg>\n";
}

}  // namespace counterflow
