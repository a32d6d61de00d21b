#include "report/columns.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace counterflow {
namespace {

class Writer {
 public:
  void number(std::uint64_t value) {
    while (value >= 0x80) {
      out_ += static_cast<char>(value | 0x80);
      value >>= 7;
    }
    out_ += static_cast<char>(value);
  }
  void change(std::int64_t value) {
    const auto bits = static_cast<std::uint64_t>(value);
    number(value < 0 ? ~(bits << 1) : bits << 1);
  }
  // A change since `last`, which becomes the value.
  void step(std::int64_t& last, std::int64_t value) {
    change(value - last);
    last = value;
  }
  [[nodiscard]] std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

// An op without its microbatch.
struct Template {
  OpKind kind;
  std::uint8_t replica;
  std::uint16_t stage;
  friend auto operator<=>(const Template&, const Template&) = default;
};

Template template_of(const Op& op) {
  return {op.kind, op.replica, op.stage};
}

// The templates of a lane; a rank has a few for each of its stages.
class Templates {
 public:
  explicit Templates(const Lane& lane) {
    for (const Op& op : lane.ops) {
      const Template wanted = template_of(op);
      const auto place = std::lower_bound(list_.begin(), list_.end(), wanted);
      if (place == list_.end() || *place != wanted) list_.insert(place, wanted);
    }
  }
  [[nodiscard]] const std::vector<Template>& list() const { return list_; }
  [[nodiscard]] std::size_t index(const Op& op) const {
    return static_cast<std::size_t>(std::lower_bound(list_.begin(), list_.end(), template_of(op)) -
                                    list_.begin());
  }

 private:
  std::vector<Template> list_;  // ascending
};

class LaneWriter {
 public:
  LaneWriter(Writer& out, const Lane& lane, std::size_t ranks)
      : out_(out), lane_(lane), ranks_(ranks), templates_(lane) {}

  void write() {
    out_.number(lane_.boxes.size());
    out_.number(templates_.list().size());
    for (const Template& each : templates_.list()) {
      out_.number(static_cast<std::uint64_t>(each.kind));
      out_.number(each.replica);
      out_.number(each.stage);
    }
    shapes();
    ops();
    times();
    memory();
    waits();
  }

 private:
  void shapes() {
    for (const Box& box : lane_.boxes) out_.number(box.stream);
    for (const Box& box : lane_.boxes) {
      out_.number(4 * std::uint64_t{box.ops.count} + static_cast<std::uint64_t>(box.kind));
    }
  }

  // 0 for a box without an op, else 1 + its first template.
  [[nodiscard]] std::size_t class_of(const Box& box) const {
    return box.ops.count == 0 ? 0 : 1 + templates_.index(lane_.ops_of(box).front());
  }

  void ops() {
    for (const Box& box : lane_.boxes) {
      for (const Op& op : lane_.ops_of(box)) out_.number(templates_.index(op));
    }
    std::vector<std::int64_t> last(templates_.list().size());
    for (const Box& box : lane_.boxes) {
      for (const Op& op : lane_.ops_of(box)) {
        out_.step(last[templates_.index(op)], op.microbatch);
      }
    }
  }

  void times() {
    std::vector<std::int64_t> end(lane_.streams.size());
    for (const Box& box : lane_.boxes) {
      out_.change(box.when.begin.count() - end[box.stream]);
      end[box.stream] = box.when.end.count();
    }
    std::vector<std::int64_t> duration(templates_.list().size() + 1);
    for (const Box& box : lane_.boxes) {
      out_.step(duration[class_of(box)], box.when.length().count());
    }
    std::vector<std::int64_t> bytes(templates_.list().size() + 1);
    for (const Box& box : lane_.boxes) out_.step(bytes[class_of(box)], box.bytes.value);
  }

  void memory() {
    out_.number(lane_.memory.size());
    std::int64_t at = 0;
    for (const MemorySample& sample : lane_.memory) out_.step(at, sample.at.count());
    std::int64_t held = 0;
    for (const MemorySample& sample : lane_.memory) out_.step(held, sample.held.value);
  }

  void waits() {
    out_.number(lane_.waits.size());
    std::int64_t instruction = 0;
    for (const Wait& wait : lane_.waits) out_.step(instruction, wait.instruction);
    for (const Wait& wait : lane_.waits) out_.number(wait.rank);
    std::vector<std::int64_t> on(ranks_);
    for (const Wait& wait : lane_.waits) out_.step(on[wait.rank], wait.on);
  }

  Writer& out_;
  const Lane& lane_;
  std::size_t ranks_;
  Templates templates_;
};

}  // namespace

std::string encode_columns(const Drawing& drawing) {
  Writer out;
  for (const Lane& lane : drawing.lanes) LaneWriter(out, lane, drawing.lanes.size()).write();
  return out.take();
}

}  // namespace counterflow
