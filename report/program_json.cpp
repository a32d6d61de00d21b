#include "report/program_json.h"

#include <fmt/format.h>

#include "report/draw.h"
#include "report/json/writer.h"
#include "report/report_json.h"

namespace counterflow {
namespace {

using json::Array;
using json::Object;

// kNone and kNoCommunicator are written as -1.
template <typename T>
std::int64_t or_none(T index) {
  return index == std::numeric_limits<T>::max() ? -1 : static_cast<std::int64_t>(index);
}

template <std::size_t n>
void append_names(Object& object, std::string_view table,
                  const std::array<std::string_view, n>& names) {
  Array array(object.member(table));
  for (const std::string_view column : names) array.add(column);
  array.close();
}

void append_columns(std::string& out) {
  Object object(out);
  append_names(object, "kernels", program_columns::kernels);
  append_names(object, "instructions", program_columns::instructions);
  append_names(object, "waits", program_columns::waits);
  append_names(object, "transfers", program_columns::transfers);
  append_names(object, "collectives", program_columns::collectives);
  append_names(object, "accesses", program_columns::accesses);
  append_names(object, "slots", program_columns::slots);
  object.close();
}

void append(Array& row, const Kernel& k) {
  row.add(token(k.kind)).add(token(k.paired_kind)).add(k.replica).add(k.paired_replica);
  row.add(k.stage).add(k.paired_stage);
  row.add(k.duration.count()).add(k.allocates.value).add(k.frees.value);
}

void append(Array& row, Range range) {
  row.add(range.first).add(range.count);
}

void append(Array& row, const Instruction& i) {
  row.add(name(i.kind)).add(i.stream).add(or_none(i.communicator)).add(or_none(i.kernel));
  row.add(i.op).add(i.paired).add(or_none(i.records)).add(i.generation);
  append(row, i.waits);
  append(row, i.body);
}

void append(Array& row, const EventWait& wait) {
  row.add(or_none(wait.event)).add(wait.generation);
}

void append(Array& row, const Transfer& t) {
  row.add(t.is_send).add(name(t.type)).add(t.peer).add(t.sequence);
  row.add(name(t.payload.kind)).add(t.payload.replica).add(t.payload.from).add(t.payload.to);
  row.add(t.payload.part).add(t.payload.microbatch);
  row.add(or_none(t.slot)).add(t.version).add(t.size.value);
}

void append(Array& row, const Collective& c) {
  row.add(name(c.kind)).add(c.sequence).add(or_none(c.slot)).add(c.version).add(c.size.value);
}

void append(Array& row, const Access& a) {
  row.add(or_none(a.slot)).add(std::uint32_t{a.version}).add(a.is_write != 0);
}

void append(Array& row, const BufferSlot& s) {
  row.add(name(s.pool)).add(s.offset.value).add(s.size.value);
}

template <typename T>
void append_table(std::string& out, const std::vector<T>& table, std::string_view separator = ",") {
  Array rows(out, separator);
  for (const T& entry : table) {
    Array row(rows.element());
    append(row, entry);
    row.close();
  }
  rows.close();
}

void append_communicators(std::string& out, const std::vector<Communicator>& communicators) {
  Array array(out, ",\n");
  for (const Communicator& communicator : communicators) {
    Object object(array.element());
    object.add("kind", name(communicator.kind));
    Array members(object.member("members"));
    for (const Rank member : communicator.members) members.add(member);
    members.close();
    object.add("max_thread_blocks", communicator.max_thread_blocks);
    object.close();
  }
  array.close();
}

void append_streams(std::string& out, const std::vector<Stream>& streams) {
  Array array(out);
  for (const Stream& stream : streams) {
    Object object(array.element());
    object.add("role", name(stream.role));
    object.add("priority", stream.priority);
    object.add("label", stream.label);
    object.close();
  }
  array.close();
}

void append_rank(std::string& out, const RankProgram& rank) {
  Object object(out, ",\n ");
  append_streams(object.member("streams"), rank.streams);
  object.add("events", rank.events);
  object.add("static_memory_bytes", rank.static_memory.value);
  append_table(object.member("instructions"), rank.instructions, ",\n");
  append_table(object.member("waits"), rank.waits);
  append_table(object.member("transfers"), rank.transfers, ",\n");
  append_table(object.member("collectives"), rank.collectives);
  append_table(object.member("accesses"), rank.accesses);
  append_table(object.member("slots"), rank.slots);
  object.close();
}

}  // namespace

std::string program_json(const Program& program) {
  std::string out;
  Object object(out, ",\n");
  object.add("schema_version", kSchemaVersion);
  object.add("version", program.version);
  object.add("hash", fmt::format("{:016x}", hash(program)));
  object.add("schedule", program.schedule);
  object.add("stages", program.stages);
  object.add("microbatches", program.microbatches);
  append_columns(object.member("columns"));
  append_table(object.member("kernels"), program.kernels, ",\n");
  append_communicators(object.member("communicators"), program.communicators);
  Array ranks(object.member("ranks"), ",\n");
  for (const RankProgram& rank : program.ranks) append_rank(ranks.element(), rank);
  ranks.close();
  object.close();
  out += '\n';
  return out;
}

}  // namespace counterflow
