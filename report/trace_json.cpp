#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

#include "report/draw.h"
#include "report/json/writer.h"
#include "report/trace_sink.h"

// The format: "Trace Event Format" of Chromium, which Perfetto reads too. Times are microseconds.
namespace counterflow {
namespace {

// Exact to the nanosecond and no longer than that takes: "18522", "18522.5", "0.007".
void append_microseconds(std::string& out, Time time) {
  const std::int64_t nanoseconds = time.count() % 1000;
  json::append(out, time.count() / 1000);
  if (nanoseconds == 0) return;
  fmt::format_to(std::back_inserter(out), ".{:03}", nanoseconds);
  while (out.back() == '0') out.pop_back();
}

// A process is a rank, a thread a track.
class JsonTrace : public TraceSink {
 public:
  JsonTrace() { out_ += R"({"displayTimeUnit":"ns","traceEvents":[)"; }

  [[nodiscard]] std::string take() && {
    out_ += "\n]}\n";
    return std::move(out_);
  }

  void rank(std::size_t rank) override {
    add_name("process_name", rank, 0, fmt::format("rank {}", rank));
    add_sort_index("process_sort_index", rank, 0, rank);
  }

  void track(std::size_t rank, std::size_t track, std::string_view label) override {
    add_name("thread_name", rank, thread(track), label);
    add_sort_index("thread_sort_index", rank, thread(track), track);
  }

  void memory(std::size_t rank, const MemorySample& sample) override {
    begin('C', rank);
    out_ += R"(,"name":"memory","ts":)";
    append_microseconds(out_, std::max(sample.at, Time{0}));
    fmt::format_to(std::back_inserter(out_), R"(,"args":{{"bytes":{}}}}})", sample.held.value);
  }

  // An arrow is bound to the slice written last on its track, so its ends follow their slices.
  void slice(const TraceSlice& slice) override {
    begin('X', slice.rank);
    fmt::format_to(std::back_inserter(out_), R"(,"tid":{},"ts":)", thread(slice.track));
    append_microseconds(out_, slice.when.begin);
    out_ += R"(,"dur":)";
    append_microseconds(out_, slice.when.length());
    fmt::format_to(std::back_inserter(out_), R"(,"name":"{}","cat":"{}")", slice.label.name,
                   slice.label.category);
    if (!slice.label.arguments().empty()) add_arguments(slice.label);
    out_ += '}';
    for (const std::uint64_t message : slice.sent) {
      add_arrow_end('s', slice.rank, slice.track, slice.when.begin, message);
    }
    for (const std::uint64_t message : slice.received) {
      arrival(slice.rank, slice.track, slice.when.begin, message);
    }
  }

  void arrival(std::size_t rank, std::size_t track, Time at, std::uint64_t message) override {
    add_arrow_end('f', rank, track, at, message);
  }

 private:
  // Viewers treat thread 0 as the kernel's idle one.
  [[nodiscard]] static std::size_t thread(std::size_t track) { return track + 1; }

  // Begins an event; what follows are its other members.
  void begin(char phase, std::size_t rank) {
    out_ += first_ ? "\n" : ",\n";
    first_ = false;
    fmt::format_to(std::back_inserter(out_), R"({{"ph":"{}","pid":{})", phase, rank);
  }

  void add_name(std::string_view what, std::size_t rank, std::size_t thread,
                std::string_view text) {
    begin('M', rank);
    fmt::format_to(std::back_inserter(out_), R"(,"tid":{},"name":"{}","args":{{"name":)", thread,
                   what);
    json::append_quoted(out_, text);
    out_ += "}}";
  }
  void add_sort_index(std::string_view what, std::size_t rank, std::size_t thread,
                      std::size_t index) {
    begin('M', rank);
    fmt::format_to(std::back_inserter(out_),
                   R"(,"tid":{},"name":"{}","args":{{"sort_index":{}}}}})", thread, what, index);
  }

  void add_arguments(const TraceLabel& label) {
    out_ += R"(,"args":)";
    char before = '{';
    for (const TraceArgument& each : label.arguments()) {
      fmt::format_to(std::back_inserter(out_), R"({}"{}":{})", before, each.key, each.value);
      before = ',';
    }
    out_ += '}';
  }

  void add_arrow_end(char phase, std::size_t rank, std::size_t track, Time at,
                     std::uint64_t message) {
    begin(phase, rank);
    fmt::format_to(std::back_inserter(out_), R"(,"tid":{},"id":{},"ts":)", thread(track), message);
    append_microseconds(out_, at);
    out_ += R"(,"name":"message","cat":"message")";
    if (phase == 'f') out_ += R"(,"bp":"e")";
    out_ += '}';
  }

  std::string out_;
  bool first_ = true;
};

}  // namespace

std::string trace_json(const DrawContext& run) {
  JsonTrace trace;
  write_trace(run, trace);
  return std::move(trace).take();
}

}  // namespace counterflow
