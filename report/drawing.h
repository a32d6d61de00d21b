#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/draw.h"
#include "report/report.h"
#include "report/waits.h"
#include "scheduler/ir/program.h"
#include "scheduler/ir/timeline.h"

// What is drawn of a run, as a value of its own: made from a program and its timeline, or read from
// timeline.json; SVG, HTML and comparison draw either alike.
namespace counterflow {

// One instruction.
struct Box {
  Interval when;  // as in the Timeline; begin < 0: it never ran
  InstructionKind kind = InstructionKind::run;
  StreamId stream = 0;
  Range ops;    // into Lane::ops: one; two of a fused pair; of a transfer one for each message
  Bytes bytes;  // moved by a transfer or collective
  friend bool operator==(const Box&, const Box&) = default;
};

// One rank.
struct Lane {
  std::vector<Stream> streams;
  std::vector<Op> ops;
  std::vector<Box> boxes;  // in issue order
  std::vector<MemorySample> memory;
  std::optional<Bytes> memory_limit;
  std::vector<Wait> waits;  // by ascending instruction; none where the program is not known

  [[nodiscard]] std::span<const Op> ops_of(const Box& box) const { return entries(ops, box.ops); }
  [[nodiscard]] bool on_compute_stream(const Box& box) const {
    const StreamRole role = streams[box.stream].role;
    return role == StreamRole::compute || role == StreamRole::second_compute;
  }
  friend bool operator==(const Lane&, const Lane&) = default;
};

struct Drawing {
  Report report;
  std::vector<Lane> lanes;  // [rank]
};

// O(instructions).
[[nodiscard]] Drawing make_drawing(const DrawContext& run);

// The interval to draw: everything that ran, and time 0 of its axis (the first compute).
struct DrawnTime {
  Time origin{0};
  Time begin{0};
  Time end{0};
};
[[nodiscard]] DrawnTime drawn_time(const Drawing& drawing);

// timeline.json of a drawing, and back. Reading throws InputError, with the place in the file, on
// anything this does not write and on what contradicts itself: ops that the report does not have,
// times out of a stream's order, waits that never end, figures that the instructions do not give.
// O(instructions).
[[nodiscard]] std::string timeline_json(const Drawing& drawing);
[[nodiscard]] Drawing parse_timeline_json(std::string_view text,
                                          const std::string& file = "timeline.json");

// The streams of a lane, as timeline.json has them.
void append_streams(std::string& out, const std::vector<Stream>& streams);

[[nodiscard]] std::string timeline_svg(const Drawing& drawing);

}  // namespace counterflow
