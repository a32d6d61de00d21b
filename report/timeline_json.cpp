#include <nlohmann/json.hpp>

#include "report/drawing.h"
#include "report/json/reader.h"
#include "report/json/writer.h"
#include "report/report_json.h"
#include "scheduler/ir/schedule_file.h"

namespace counterflow {
namespace {

constexpr std::size_t kBoxColumns = 6;
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

std::vector<Stream> read_streams(const json::Node& node) {
  if (node.size() > kMaxStreams) node.fail("more than 255 streams");
  std::vector<Stream> streams;
  for (std::size_t i = 0; i < node.size(); ++i) {
    const json::Node stream = node.at(i);
    streams.push_back(
        {json::one_of(stream.at("role"), StreamRole::host), 0, stream.at("label").text()});
  }
  return streams;
}

Box read_box(json::Row& row, Lane& lane) {
  Box box;
  box.stream = row.integer_as<StreamId>(0, static_cast<std::int64_t>(lane.streams.size()) - 1);
  box.kind = static_cast<InstructionKind>(
      row.integer(0, static_cast<std::int64_t>(InstructionKind::step_end)));
  box.ops.first = static_cast<std::uint32_t>(lane.ops.size());
  row.ops(lane.ops);
  box.ops.count = static_cast<std::uint32_t>(lane.ops.size()) - box.ops.first;
  box.when.begin = Time{row.integer(-1)};
  box.when.end = Time{row.integer(box.when.begin.count())};
  box.bytes = Bytes{row.integer(0)};
  return box;
}

Lane read_lane(const json::Node& node) {
  Lane lane;
  lane.streams = read_streams(node.at("streams"));
  if (node.has("memory_limit_bytes")) {
    lane.memory_limit = Bytes{node.at("memory_limit_bytes").integer(0)};
  }
  const json::Node boxes = node.at("instructions");
  lane.boxes.reserve(boxes.size());
  boxes.for_each_row(kBoxColumns,
                     [&](json::Row& row) { lane.boxes.push_back(read_box(row, lane)); });
  Time last{json::kMinInteger};
  node.at("memory").for_each_row(2, [&](json::Row& row) {
    last = Time{row.integer(last.count())};
    lane.memory.push_back({last, Bytes{row.integer()}});
  });
  return lane;
}

// Needs all lanes: a wait may name an instruction of any. Files without waits are older, or of a
// run whose program is not known.
void read_waits(const json::Node& node, std::size_t rank, std::vector<Lane>& lanes) {
  if (!node.has("waits")) return;
  Lane& lane = lanes[rank];
  const auto last = [](const auto& table) { return static_cast<std::int64_t>(table.size()) - 1; };
  std::uint32_t instruction = 0;
  node.at("waits").for_each_row(3, [&](json::Row& row) {
    instruction = row.integer_as<std::uint32_t>(instruction, last(lane.boxes));
    const auto other = row.integer_as<std::uint32_t>(0, last(lanes));
    const auto on = row.integer_as<std::uint32_t>(0, last(lanes[other].boxes));
    lane.waits.push_back({instruction, other, on});
  });
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

Drawing parse_timeline_json(std::string_view text, const std::string& file) {
  const nlohmann::json document = json::parse(text, file);
  const json::Node root(document, file);
  (void)root.at("schema_version").integer(kSchemaVersion, kSchemaVersion);
  Drawing drawing;
  drawing.report = read_report(root.at("report"));
  const json::Node ranks = root.at("ranks");
  for (std::size_t r = 0; r < ranks.size(); ++r) drawing.lanes.push_back(read_lane(ranks.at(r)));
  for (std::size_t r = 0; r < ranks.size(); ++r) read_waits(ranks.at(r), r, drawing.lanes);
  if (drawing.lanes.size() != drawing.report.per_rank.size()) {
    ranks.fail("expected as many ranks as the report has");
  }
  return drawing;
}

}  // namespace counterflow
