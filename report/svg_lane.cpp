#include "report/svg_lane.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "report/format.h"
#include "report/palette.h"
#include "scheduler/ir/schedule_file.h"

namespace counterflow {
namespace {

constexpr double kDigitWidth = 6.2;

// Draws boxes from left to right; those too narrow to see go into one block with their neighbours.
class LaneDrawer {
 public:
  LaneDrawer(SvgCanvas& canvas, const Lane& lane, const TimeScale& scale, const SvgLaneStyle& style,
             double y)
      : canvas_(canvas), lane_(lane), scale_(scale), style_(style), y_(y), colours_(lane) {}

  void draw() {
    canvas_.rectangle(scale_.left, y_, style_.right - scale_.left, style_.height, kIdleFill);
    for (const Box& box : in_order()) {
      const double left = scale_.x(box.when.begin);
      const double width = scale_.x(box.when.end) - left;
      if (width >= style_.narrowest) {
        flush();
        draw_box(box, left, width);
      } else {
        merge(box, left, width);
      }
    }
    flush();
  }

 private:
  struct Block {
    double left = 0;
    double right = 0;
    double weight = 0;  // of the boxes in it
    Colour colour;
  };

  [[nodiscard]] std::vector<Box> in_order() const {
    std::vector<Box> boxes;
    for (const Box& box : lane_.boxes) {
      if (box.kind == InstructionKind::run && box.ops.count > 0 && box.when.begin.count() >= 0 &&
          lane_.on_compute_stream(box)) {
        boxes.push_back(box);
      }
    }
    std::sort(boxes.begin(), boxes.end(), [](const Box& a, const Box& b) {
      return std::tie(a.when.begin, a.ops.first) < std::tie(b.when.begin, b.ops.first);
    });
    return boxes;
  }

  void draw_box(const Box& box, double left, double width) {
    const auto ops = lane_.ops_of(box);
    // A hairline between neighbours, where there is room for one.
    const double drawn = width > 4 ? width - 0.5 : width;
    const double height = style_.height / static_cast<double>(ops.size());
    const std::string title = style_.with_titles ? title_of(box) : std::string();
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const double top = y_ + height * static_cast<double>(i);
      const Colour colour = colours_.of(ops[i]);
      canvas_.rectangle(left, top, drawn, height, hex(colour), title);
      const std::string number = fmt::format("{}", ops[i].microbatch);
      if (height >= 9 && width >= 3 + kDigitWidth * static_cast<double>(number.size())) {
        canvas_.text(left + drawn / 2, top + height / 2 + 3.5, number,
                     is_light(colour) ? "on-light" : "on-dark", SvgCanvas::Anchor::middle);
      }
    }
  }

  [[nodiscard]] std::string title_of(const Box& box) const {
    std::string title;
    for (const Op& op : lane_.ops_of(box)) {
      if (!title.empty()) title += " with ";
      append_text(title, op);
    }
    return fmt::format("{}, {} from {}", title, readable_time(box.when.length()),
                       readable_time(box.when.begin));
  }

  void merge(const Box& box, double left, double width) {
    const auto ops = lane_.ops_of(box);
    const Colour colour =
        ops.size() > 1 ? mixed(colours_.of(ops[0]), colours_.of(ops[1]), 0.5) : colours_.of(ops[0]);
    if (block_ && (left - block_->right >= style_.narrowest ||
                   block_->right - block_->left >= style_.narrowest)) {
      flush();
    }
    if (!block_) block_ = Block{left, left, 0, colour};
    block_->weight += width;
    if (block_->weight > 0) {
      block_->colour = mixed(block_->colour, colour, width / block_->weight);
    }
    block_->right = std::max(block_->right, left + width);
  }

  void flush() {
    if (block_) {
      canvas_.rectangle(block_->left, y_, std::max(block_->right - block_->left, 0.1),
                        style_.height, hex(block_->colour));
    }
    block_.reset();
  }

  SvgCanvas& canvas_;
  const Lane& lane_;
  const TimeScale& scale_;
  const SvgLaneStyle& style_;
  double y_;
  LaneColours colours_;
  std::optional<Block> block_;
};

// Draws the steps of a curve, from its base. What changes within half a unit is drawn as a spike.
class StepPath {
 public:
  StepPath(double x, double base) : x_(x), base_(base), top_(base), now_(base) {
    data_ += 'M';
    SvgCanvas::append_number(data_, x);
    data_ += ' ';
    SvgCanvas::append_number(data_, base);
  }
  // From x on, the curve is at y.
  void step(double x, double y) {
    if (x - x_ >= 0.5) {
      flush(x);
      top_ = y;
    }
    top_ = std::min(top_, y);
    now_ = y;
  }
  [[nodiscard]] std::string close(double x) {
    flush(x);
    append('V', base_);
    return data_ + "Z";
  }

 private:
  void flush(double x) {
    append('V', top_);
    if (now_ > top_) append('V', now_);
    append('H', x);
    x_ = x;
  }
  void append(char command, double value) {
    data_ += command;
    SvgCanvas::append_number(data_, value);
  }
  double x_;
  double base_;
  double top_;  // highest since x_
  double now_;
  std::string data_;
};

}  // namespace

void draw_lane(SvgCanvas& canvas, const Lane& lane, const TimeScale& scale,
               const SvgLaneStyle& style, double y) {
  LaneDrawer(canvas, lane, scale, style, y).draw();
}

void draw_memory(SvgCanvas& canvas, const Lane& lane, const TimeScale& scale, Time end, Bytes most,
                 Strip strip) {
  const auto y = [&](Bytes held) {
    return strip.y +
           strip.height * (1 - static_cast<double>(held.value) / static_cast<double>(most.value));
  };
  const double bottom = strip.y + strip.height;
  const double right = scale.x(end);
  if (!lane.memory.empty()) {
    StepPath path(scale.left, bottom);
    const MemorySample* peak = &lane.memory.front();
    for (const MemorySample& sample : lane.memory) {
      path.step(std::clamp(scale.x(sample.at), scale.left, right), y(sample.held));
      if (sample.held > peak->held) peak = &sample;
    }
    canvas.path(path.close(right), "memory");
    const double x = std::clamp(scale.x(peak->at), scale.left, right);
    canvas.line(x, y(peak->held), x, y(peak->held), "peak");
  }
  if (lane.memory_limit) {
    const double limit = y(*lane.memory_limit);
    canvas.line(scale.left, limit, right, limit, "limit");
  }
}

}  // namespace counterflow
