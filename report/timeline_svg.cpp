#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "report/drawing.h"
#include "report/format.h"
#include "report/kind_names.h"
#include "report/palette.h"
#include "report/svg_canvas.h"
#include "report/svg_lane.h"
#include "report/time_axis.h"

namespace counterflow {
namespace {

constexpr double kWidth = 1400;
constexpr double kLeft = 64;
constexpr double kRight = 84;
constexpr double kTop = 96;  // headline, figures, legend, axis
constexpr double kBottom = 14;
constexpr int kMostShapes = 50000;

struct Heights {
  double lane = 0;
  double memory = 0;  // 0: no memory is drawn
  double gap = 0;
  [[nodiscard]] double pitch() const { return lane + (memory > 0 ? memory + 2 : 0) + gap; }
};

bool knows_memory(const Drawing& drawing) {
  return std::any_of(drawing.lanes.begin(), drawing.lanes.end(), [](const Lane& lane) {
    return std::any_of(lane.memory.begin(), lane.memory.end(),
                       [](const MemorySample& sample) { return sample.held.value > 0; });
  });
}

// The full height of every memory strip, so that ranks compare.
Bytes most_memory(const Drawing& drawing) {
  Bytes most{1};
  for (const Lane& lane : drawing.lanes) {
    for (const MemorySample& sample : lane.memory) most = std::max(most, sample.held);
    if (lane.memory_limit) most = std::max(most, *lane.memory_limit);
  }
  return most;
}

Heights heights_for(const Drawing& drawing) {
  const std::size_t ranks = drawing.lanes.size();
  Heights heights{30, 20, 6};
  if (ranks > 8) heights = {22, 16, 4};
  if (ranks > 16) heights = {15, 10, 2};
  if (ranks > 32) heights = {10, 7, 2};
  if (!knows_memory(drawing)) heights.memory = 0;
  return heights;
}

class Picture {
 public:
  explicit Picture(const Drawing& drawing)
      : drawing_(drawing),
        time_(drawn_time(drawing)),
        heights_(heights_for(drawing)),
        most_memory_(most_memory(drawing)),
        canvas_(kWidth,
                kTop + heights_.pitch() * static_cast<double>(drawing.lanes.size()) + kBottom) {
    const auto length = static_cast<double>(std::max((time_.end - time_.begin).count(), 1L));
    scale_ = {time_.begin, kLeft, (kWidth - kLeft - kRight) / length};
  }

  [[nodiscard]] std::string draw() {
    headline();
    if (drawing_.lanes.empty()) return canvas_.take();
    legend();
    axis();
    const SvgLaneStyle style = lane_style();
    for (std::size_t r = 0; r < drawing_.lanes.size(); ++r) {
      const double y = kTop + heights_.pitch() * static_cast<double>(r);
      canvas_.text(kLeft - 8, y + heights_.lane / 2 + 4, fmt::format("rank {}", r), "rank",
                   SvgCanvas::Anchor::end);
      draw_lane(canvas_, drawing_.lanes[r], scale_, style, y);
      lane_figures(r, y);
      if (heights_.memory > 0) {
        draw_memory(canvas_, drawing_.lanes[r], scale_, time_.end, most_memory_,
                    {y + heights_.lane + 2, heights_.memory});
      }
    }
    return canvas_.take();
  }

 private:
  void headline() {
    const Report& report = drawing_.report;
    canvas_.text(kLeft, 26,
                 fmt::format("{} on {} ranks, {} microbatches", report.schedule, report.ranks,
                             report.microbatches),
                 "title");
    std::string figures = fmt::format(
        "makespan {}   ·   bubble {}   ·   span bubble {}", readable_time(report.makespan),
        readable_share(report.bubble_fraction), readable_share(report.span_bubble_fraction));
    if (report.lower_bound.count() > 0) {
      figures += fmt::format("   ·   lower bound {}, gap {}", readable_time(report.lower_bound),
                             readable_share(report.gap));
    }
    canvas_.text(kLeft, 46, figures, "figures");
  }

  void legend() {
    std::set<OpKind> kinds;
    bool has_pairs = false;
    for (const Lane& lane : drawing_.lanes) {
      for (const Box& box : lane.boxes) {
        if (box.kind != InstructionKind::run) continue;
        for (const Op& op : lane.ops_of(box)) kinds.insert(op.kind);
        has_pairs |= box.ops.count > 1;
      }
    }
    double x = kLeft;
    for (const OpKind kind : kinds) x = key(x, hex(base_colour(kind)), spoken(kind));
    x = key(x, kIdleFill, "idle");
    std::string notes;
    const auto note = [&](std::string_view text) {
      if (!notes.empty()) notes += "   ·   ";
      notes += text;
    };
    const std::string_view lighter = LaneColours(drawing_.lanes.front()).lighter();
    if (!lighter.empty()) note(fmt::format("lighter: {}", lighter));
    if (has_pairs) note("two halves: a fused pair, forward above");
    if (heights_.memory > 0) note(memory_note());
    canvas_.text(x, 66, notes, "quiet");
  }

  // One entry of the legend; returns where the next one goes.
  double key(double x, std::string_view fill, std::string_view label) {
    canvas_.rectangle(x, 57, 11, 11, fill);
    canvas_.text(x + 16, 66, label, "label");
    return x + 34 + 5.8 * static_cast<double>(label.size());
  }

  // One limit is named; where ranks differ, the dashes have to say it.
  [[nodiscard]] std::string memory_note() const {
    const Lane& first = drawing_.lanes.front();
    const bool same =
        std::all_of(drawing_.lanes.begin(), drawing_.lanes.end(),
                    [&](const Lane& lane) { return lane.memory_limit == first.memory_limit; });
    if (!same) return "violet: memory, dashed: its limit";
    if (!first.memory_limit) return "violet: memory";
    return fmt::format("violet: memory, dashed: its limit of {}",
                       readable_bytes(*first.memory_limit));
  }

  void axis() {
    const double bottom =
        kTop + heights_.pitch() * static_cast<double>(drawing_.lanes.size()) - heights_.gap;
    for (const Tick& tick : ticks(time_.begin - time_.origin, time_.end - time_.origin, 10)) {
      const double x = scale_.x(time_.origin + tick.at);
      canvas_.line(x, kTop - 6, x, bottom, "grid");
      canvas_.text(x, kTop - 10, tick.label, "quiet", SvgCanvas::Anchor::middle);
    }
  }

  void lane_figures(std::size_t r, double y) {
    const RankReport& rank = drawing_.report.per_rank[r];
    const auto makespan = static_cast<double>(drawing_.report.makespan.count());
    if (makespan > 0) {
      canvas_.text(kWidth - kRight + 8, y + heights_.lane / 2 + 4,
                   readable_share(static_cast<double>(rank.busy.count()) / makespan) + " busy",
                   "quiet");
    }
    if (heights_.memory >= 10) {
      canvas_.text(kWidth - kRight + 8, y + heights_.lane + heights_.memory / 2 + 5,
                   readable_bytes(rank.peak_memory), "quiet");
    }
  }

  [[nodiscard]] SvgLaneStyle lane_style() const {
    SvgLaneStyle style;
    style.height = heights_.lane;
    style.right = kWidth - kRight;
    std::ptrdiff_t runs = 0;
    for (const Lane& lane : drawing_.lanes) {
      runs += std::count_if(lane.boxes.begin(), lane.boxes.end(),
                            [](const Box& box) { return box.kind == InstructionKind::run; });
    }
    style.with_titles = runs <= 4000;
    // Few boxes are all drawn. Of many, those too narrow to see are merged, so that the picture
    // never holds much more than kMostShapes.
    const double lanes_width = (style.right - kLeft) * static_cast<double>(drawing_.lanes.size());
    style.narrowest = runs <= kMostShapes ? 0.05 : std::max(0.5, lanes_width / kMostShapes);
    return style;
  }

  const Drawing& drawing_;
  DrawnTime time_;
  Heights heights_;
  Bytes most_memory_;
  SvgCanvas canvas_;
  TimeScale scale_;
};

}  // namespace

std::string timeline_svg(const Drawing& drawing) {
  return Picture(drawing).draw();
}

std::string timeline_svg(const DrawContext& run) {
  return timeline_svg(make_drawing(run));
}

}  // namespace counterflow
