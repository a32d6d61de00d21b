#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "report/draw.h"
#include "report/protobuf_writer.h"
#include "report/trace_sink.h"

// The format: a Trace message of perfetto/protos/perfetto/trace, a list of packets. Timestamps are
// nanoseconds of the trace's own clock. Categories and the keys of arguments are interned; names of
// slices are not: each op has its own, so that an entry for it would cost more than it saves.
namespace counterflow {
namespace {

// Field numbers, by message.
namespace trace {
constexpr std::uint32_t packet = 1;
}
namespace packet {
constexpr std::uint32_t timestamp = 8;
constexpr std::uint32_t sequence = 10;  // trusted_packet_sequence_id
constexpr std::uint32_t track_event = 11;
constexpr std::uint32_t interned_data = 12;
constexpr std::uint32_t sequence_flags = 13;
constexpr std::uint32_t track_descriptor = 60;
}  // namespace packet
namespace track {
constexpr std::uint32_t uuid = 1;
constexpr std::uint32_t name = 2;
constexpr std::uint32_t process = 3;
constexpr std::uint32_t parent = 5;
constexpr std::uint32_t counter = 8;
constexpr std::uint32_t child_ordering = 11;
constexpr std::uint32_t sibling_order_rank = 12;
}  // namespace track
namespace process {
constexpr std::uint32_t pid = 1;
constexpr std::uint32_t sort_index = 3;
constexpr std::uint32_t name = 6;
}  // namespace process
namespace counter {
constexpr std::uint32_t unit = 3;
}
namespace event {
constexpr std::uint32_t category = 3;    // interned
constexpr std::uint32_t annotation = 4;  // debug_annotations
constexpr std::uint32_t type = 9;
constexpr std::uint32_t track = 11;  // track_uuid
constexpr std::uint32_t name = 23;
constexpr std::uint32_t counter_value = 30;
constexpr std::uint32_t flow = 47;              // fixed64
constexpr std::uint32_t terminating_flow = 48;  // fixed64
}  // namespace event
namespace annotation {
constexpr std::uint32_t key = 1;  // interned
constexpr std::uint32_t integer = 4;
}  // namespace annotation
namespace interned {
constexpr std::uint32_t categories = 1;
constexpr std::uint32_t annotation_keys = 3;
constexpr std::uint32_t entry_id = 1;
constexpr std::uint32_t entry_text = 2;
}  // namespace interned

enum class EventType : std::uint8_t { slice_begin = 1, slice_end = 2, instant = 3, counter = 4 };
constexpr std::uint64_t kSequence = 1;       // everything is one sequence of packets
constexpr std::uint64_t kStateCleared = 1;   // flag: interned data begins anew
constexpr std::uint64_t kNeedsState = 2;     // flag: the packet refers to interned data
constexpr std::uint64_t kOrderExplicit = 3;  // children of a track by their order rank
constexpr std::uint64_t kUnitBytes = 3;

// Texts that stand once in the file; events name them by number, from 1.
class Interned {
 public:
  explicit Interned(std::uint32_t table) : table_(table) {}

  // The number of a text; a new one is entered into `data`, for the packet at hand.
  [[nodiscard]] std::uint64_t number(std::string_view text, ProtobufMessage& data) {
    const auto [known, is_new] = numbers_.try_emplace(std::string(text), numbers_.size() + 1);
    if (is_new) {
      ProtobufMessage entry;
      entry.add(interned::entry_id, known->second);
      entry.add(interned::entry_text, text);
      data.add(table_, entry);
    }
    return known->second;
  }

 private:
  std::uint32_t table_;
  std::unordered_map<std::string, std::uint64_t> numbers_;
};

// A process is a rank; its tracks are the children of the process's own.
class PerfettoTrace : public TraceSink {
 public:
  PerfettoTrace() {
    ProtobufMessage first;
    first.add(packet::sequence_flags, kStateCleared);
    write(first);
  }

  [[nodiscard]] std::string take() && { return std::move(trace_).take(); }

  // Process 0 would be taken for the kernel's idle one.
  void rank(std::size_t rank) override {
    uuids_.push_back(last_uuid_ + 1);
    ProtobufMessage about;
    about.add(process::pid, rank + 1);
    about.add(process::sort_index, rank);
    about.add(process::name, fmt::format("rank {}", rank));
    ProtobufMessage track;
    track.add(track::uuid, ++last_uuid_);
    track.add(track::process, about);
    track.add(track::child_ordering, kOrderExplicit);
    describe(track);

    ProtobufMessage counter;
    counter.add(counter::unit, kUnitBytes);
    ProtobufMessage memory;
    memory.add(track::uuid, ++last_uuid_);
    memory.add(track::parent, uuids_[rank]);
    memory.add(track::name, "memory");
    memory.add(track::counter, counter);
    describe(memory);
  }

  void track(std::size_t rank, std::size_t track, std::string_view label) override {
    ProtobufMessage lane;
    lane.add(track::uuid, ++last_uuid_);
    lane.add(track::parent, uuids_[rank]);
    lane.add(track::name, label);
    lane.add(track::sibling_order_rank, track + 1);
    describe(lane);
  }

  void memory(std::size_t rank, const MemorySample& sample) override {
    ProtobufMessage event = event_of(EventType::counter, uuids_[rank] + 1);
    event.add(event::counter_value, static_cast<std::uint64_t>(sample.held.value));
    write(packet_at(std::max(sample.at, Time{0}), event));
  }

  void slice(const TraceSlice& slice) override {
    const std::uint64_t track = uuid(slice.rank, slice.track);
    ProtobufMessage interned;
    ProtobufMessage begin = event_of(EventType::slice_begin, track);
    begin.add(event::category, categories_.number(slice.label.category, interned));
    begin.add(event::name, slice.label.name);
    for (const TraceArgument& argument : slice.label.arguments()) {
      ProtobufMessage annotation;
      annotation.add(annotation::key, keys_.number(argument.key, interned));
      annotation.add(annotation::integer, static_cast<std::uint64_t>(argument.value));
      begin.add(event::annotation, annotation);
    }
    for (const std::uint64_t message : slice.sent) begin.add_fixed64(event::flow, flow(message));
    for (const std::uint64_t message : slice.received) {
      begin.add_fixed64(event::terminating_flow, flow(message));
    }
    write_interning(slice.when.begin, begin, interned);
    write(packet_at(slice.when.end, event_of(EventType::slice_end, track)));
  }

  // Flows lead from the earlier slice to the later, so one that arrives with a slice begun before
  // it left needs a mark of its own.
  void arrival(std::size_t rank, std::size_t track, Time at, std::uint64_t message) override {
    ProtobufMessage interned;
    ProtobufMessage mark = event_of(EventType::instant, uuid(rank, track));
    mark.add(event::category, categories_.number("message", interned));
    mark.add(event::name, "message");
    mark.add_fixed64(event::terminating_flow, flow(message));
    write_interning(at, mark, interned);
  }

 private:
  // The two before a rank's first lane are its process's and its memory's.
  [[nodiscard]] std::uint64_t uuid(std::size_t rank, std::size_t track) const {
    return uuids_[rank] + 2 + track;
  }
  // Zero is no flow.
  [[nodiscard]] static std::uint64_t flow(std::uint64_t message) { return message + 1; }

  [[nodiscard]] static ProtobufMessage event_of(EventType type, std::uint64_t track) {
    ProtobufMessage event;
    event.add(event::type, static_cast<std::uint64_t>(type));
    event.add(event::track, track);
    return event;
  }
  [[nodiscard]] static ProtobufMessage packet_at(Time at, const ProtobufMessage& event) {
    ProtobufMessage packet;
    packet.add(packet::timestamp, static_cast<std::uint64_t>(at.count()));
    packet.add(packet::track_event, event);
    return packet;
  }

  void describe(const ProtobufMessage& track) {
    ProtobufMessage packet;
    packet.add(packet::track_descriptor, track);
    write(packet);
  }
  void write_interning(Time at, const ProtobufMessage& event, const ProtobufMessage& interned) {
    ProtobufMessage packet = packet_at(at, event);
    packet.add(packet::sequence_flags, kNeedsState);
    if (!interned.empty()) packet.add(packet::interned_data, interned);
    write(packet);
  }
  void write(ProtobufMessage packet) {
    packet.add(packet::sequence, kSequence);
    trace_.add(trace::packet, packet);
  }

  ProtobufMessage trace_;
  std::vector<std::uint64_t> uuids_;  // [rank]
  std::uint64_t last_uuid_ = 0;
  Interned categories_{interned::categories};
  Interned keys_{interned::annotation_keys};
};

}  // namespace

std::string trace_perfetto(const DrawContext& run) {
  PerfettoTrace trace;
  write_trace(run, trace);
  return std::move(trace).take();
}

}  // namespace counterflow
