#include "report/drawing.h"
#include "report/json/writer.h"
#include "report/report_json.h"
#include "scheduler/ir/schedule_file.h"

namespace counterflow {
namespace {

constexpr std::string_view kColumns =
    R"({"instructions":["stream","kind","op","begin_ns","end_ns","bytes"],)"
    R"("memory":["at_ns","held_bytes"],"waits":["instruction","rank","on"],)"
    R"("kinds":["run","transfer","collective","step_end"]})";

void append_box(std::string& out, const Lane& lane, const Box& box) {
  json::Array row(out);
  row.add(box.stream).add(static_cast<int>(box.kind));
  std::string& text = row.element();
  text += '"';
  for (const Op& op : lane.ops_of(box)) {
    if (text.back() != '"') text += ';';
    append_text(text, op);
  }
  text += '"';
  row.add(box.when.begin.count()).add(box.when.end.count()).add(box.bytes.value);
  row.close();
}

void append_lane(std::string& out, const Lane& lane) {
  json::Object object(out);
  append_streams(object.member("streams"), lane.streams);
  if (lane.memory_limit) object.add("memory_limit_bytes", lane.memory_limit->value);
  json::Array boxes(object.member("instructions"), ",\n");
  for (const Box& box : lane.boxes) append_box(boxes.element(), lane, box);
  boxes.close();
  json::Array memory(object.member("memory"));
  for (const MemorySample& sample : lane.memory) {
    json::Array(memory.element()).add(sample.at.count()).add(sample.held.value).close();
  }
  memory.close();
  json::Array waits(object.member("waits"));
  for (const Wait& wait : lane.waits) {
    json::Array(waits.element()).add(wait.instruction).add(wait.rank).add(wait.on).close();
  }
  waits.close();
  object.close();
}

}  // namespace

void append_streams(std::string& out, const std::vector<Stream>& streams) {
  json::Array array(out);
  for (const Stream& stream : streams) {
    json::Object object(array.element());
    object.add("role", name(stream.role));
    object.add("label", stream.label);
    object.close();
  }
  array.close();
}

std::string timeline_json(const Drawing& drawing) {
  std::string out;
  json::Object object(out, ",\n");
  object.add("schema_version", kSchemaVersion);
  append_json(object.member("report"), drawing.report);
  object.member("columns") += kColumns;
  json::Array ranks(object.member("ranks"), ",\n");
  for (const Lane& lane : drawing.lanes) append_lane(ranks.element(), lane);
  ranks.close();
  object.close();
  out += '\n';
  return out;
}

std::string timeline_json(const DrawContext& run) {
  return timeline_json(make_drawing(run));
}

}  // namespace counterflow
