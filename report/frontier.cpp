#include "report/frontier.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "report/format.h"

namespace counterflow {
namespace {

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

}  // namespace

std::string frontier_table(const Frontier& frontier) {
  std::string table = fmt::format("{:>14} {:>14} {:>14} {:>9} {:>9}",
                                  frontier.in_bytes ? "memory limit" : "activations", "peak",
                                  "makespan", "gap", "bubble");
  if (frontier.has_choices) {
    table += fmt::format(" {:>14}  {:<14} {}", "all kept", "recompute", "offload");
  }
  table += "\n";
  for (const FrontierPoint& point : frontier.points) {
    table += fmt::format("{:>14} {:>14} {:>14} {:>7.2f} % {:>7.2f} %",
                         limit_text(point.limit, frontier.in_bytes),
                         limit_text(point.peak, frontier.in_bytes), readable_time(point.makespan),
                         100 * gap(point), 100 * point.bubble_fraction);
    if (frontier.has_choices) {
      const std::string kept =
          point.all_kept ? readable_time(*point.all_kept) : std::string("does not fit");
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

}  // namespace counterflow
