#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/report.h"
#include "scheduler/ir/program.h"
#include "scheduler/ir/timeline.h"

// Everything a run can be written as. All are pure functions to a string: same input, same bytes.
namespace counterflow {

// What the drawings show beside the timeline itself.
struct DrawContext {
  const Program& program;
  const Timeline& timeline;
  const Report& report;
  std::vector<Bytes> memory_limits;  // one a rank, or empty
};

// timeline.json: every instruction with rank, stream, op, begin and end; memory over time; the
// report.
[[nodiscard]] std::string timeline_json(const DrawContext& run);
// program.json: the complete program with its hash.
[[nodiscard]] std::string program_json(const Program& program);
// trace.json: Chrome trace events (also Perfetto): a process a rank, a thread a stream.
[[nodiscard]] std::string trace_json(const DrawContext& run);
// trace.perfetto-trace: the same in Perfetto's own binary format (protobuf).
[[nodiscard]] std::string trace_perfetto(const DrawContext& run);
// timeline.svg: lanes by rank, coloured by kind, a memory curve under each.
[[nodiscard]] std::string timeline_svg(const DrawContext& run);
// timeline.html: one self-contained file; lanes, hover, zoom, memory.
[[nodiscard]] std::string timeline_html(const DrawContext& run);

}  // namespace counterflow
