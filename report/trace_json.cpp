#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>

#include "report/draw.h"
#include "report/json/writer.h"
#include "report/kind_names.h"
#include "scheduler/graph/matching.h"
#include "scheduler/ir/schedule_file.h"

// The format: "Trace Event Format" of Chromium, which Perfetto reads too. Times are microseconds.
namespace counterflow {
namespace {

// Exact to the nanosecond: "18522.000".
void append_microseconds(std::string& out, Time time) {
  fmt::format_to(std::back_inserter(out), "{}.{:03}", time.count() / 1000, time.count() % 1000);
}

class Trace {
 public:
  explicit Trace(const DrawContext& run)
      : program_(run.program), timeline_(run.timeline), matching_(run.program) {}

  [[nodiscard]] std::string write() {
    out_ += R"({"displayTimeUnit":"ns","traceEvents":[)";
    for (std::size_t r = 0; r < program_.ranks.size(); ++r) {
      rank_ = r;
      name_rank();
      for (std::size_t i = 0; i < program().instructions.size(); ++i) add_instruction(i);
      add_memory();
    }
    // After every slice, so that both ends of an arrow have one to hold on to.
    for (std::size_t r = 0; r < program_.ranks.size(); ++r) {
      rank_ = r;
      for (std::size_t i = 0; i < program().instructions.size(); ++i) add_arrows(i);
    }
    out_ += "\n]}\n";
    return std::move(out_);
  }

 private:
  [[nodiscard]] const RankProgram& program() const { return program_.ranks[rank_]; }

  // Begins an event; what follows are its other members.
  void begin(char phase, std::size_t rank) {
    out_ += first_ ? "\n" : ",\n";
    first_ = false;
    fmt::format_to(std::back_inserter(out_), R"({{"ph":"{}","pid":{})", phase, rank);
  }
  void end() { out_ += '}'; }

  void add_name(std::string_view what, std::size_t thread, std::string_view text) {
    begin('M', rank_);
    fmt::format_to(std::back_inserter(out_), R"(,"tid":{},"name":"{}","args":{{"name":)", thread,
                   what);
    json::append_quoted(out_, text);
    out_ += '}';
    end();
  }
  void add_sort_index(std::string_view what, std::size_t thread, std::size_t index) {
    begin('M', rank_);
    fmt::format_to(std::back_inserter(out_), R"(,"tid":{},"name":"{}","args":{{"sort_index":{}}})",
                   thread, what, index);
    end();
  }

  void name_rank() {
    add_name("process_name", 0, fmt::format("rank {}", rank_));
    add_sort_index("process_sort_index", 0, rank_);
    for (std::size_t s = 0; s < program().streams.size(); ++s) {
      const Stream& stream = program().streams[s];
      add_name("thread_name", s, stream.label.empty() ? name(stream.role) : stream.label);
      add_sort_index("thread_sort_index", s, s);
    }
  }

  void add_instruction(std::size_t index) {
    const Instruction& instruction = program().instructions[index];
    const Interval when = timeline_.ranks[rank_].instructions[index];
    if (when.begin.count() < 0) return;
    begin('X', rank_);
    fmt::format_to(std::back_inserter(out_), R"(,"tid":{},"ts":)", instruction.stream);
    append_microseconds(out_, when.begin);
    out_ += R"(,"dur":)";
    append_microseconds(out_, when.length());
    switch (instruction.kind) {
      case InstructionKind::run:
        add_run(instruction);
        break;
      case InstructionKind::transfer:
        add_transfer(instruction);
        break;
      case InstructionKind::collective:
        add_collective(instruction);
        break;
      case InstructionKind::step_end:
        out_ += R"(,"name":"step end","cat":"step end")";
        break;
    }
    end();
  }

  void add_run(const Instruction& instruction) {
    const Op& op = instruction.op;
    const Op& paired = instruction.paired;
    const bool fused = paired.kind != OpKind::none;
    out_ += R"(,"name":")";
    append_text(out_, op);
    if (fused) {
      out_ += '&';
      append_text(out_, paired);
    }
    fmt::format_to(std::back_inserter(out_), R"(","cat":"{}","args":{{"stage":{},"microbatch":{})",
                   fused ? "overlapped" : spoken(op.kind), op.stage, op.microbatch);
    if (op.replica != 0) out_ += R"(,"replica":1)";
    if (fused) {
      fmt::format_to(std::back_inserter(out_), R"(,"paired_stage":{},"paired_microbatch":{})",
                     paired.stage, paired.microbatch);
    }
    out_ += '}';
  }

  void add_transfer(const Instruction& instruction) {
    const auto transfers = program().transfers_of(instruction);
    Bytes sum;
    for (const Transfer& transfer : transfers) sum += transfer.size;
    out_ += R"(,"name":")";
    append_text(out_, instruction.op);
    if (transfers.size() > 1) {
      fmt::format_to(std::back_inserter(out_), " and {} more", transfers.size() - 1);
    }
    fmt::format_to(std::back_inserter(out_), R"(","cat":"{}","args":{{"bytes":{})",
                   spoken(instruction.op.kind), sum.value);
    if (!transfers.empty()) {
      fmt::format_to(std::back_inserter(out_), R"(,"peer":{},"sequence":{})",
                     transfers.front().peer, transfers.front().sequence);
    }
    out_ += '}';
  }

  void add_collective(const Instruction& instruction) {
    const auto body = entries(program().collectives, instruction.body);
    const std::string_view what =
        body.empty() ? name(InstructionKind::collective) : name(body.front().kind);
    out_ += R"(,"name":")";
    if (instruction.op.kind == OpKind::none) {
      out_ += what;
    } else {
      append_text(out_, instruction.op);
    }
    fmt::format_to(std::back_inserter(out_), R"(","cat":"{}","args":{{"bytes":{}}})", what,
                   body.empty() ? 0 : body.front().size.value);
  }

  void add_memory() {
    for (const MemorySample& sample : timeline_.ranks[rank_].memory) {
      begin('C', rank_);
      out_ += R"(,"name":"memory","ts":)";
      append_microseconds(out_, std::max(sample.at, Time{0}));
      fmt::format_to(std::back_inserter(out_), R"(,"args":{{"bytes":{}}})", sample.held.value);
      end();
    }
  }

  // An arrow for each message this instruction receives, from its send.
  void add_arrows(std::size_t index) {
    const Instruction& instruction = program().instructions[index];
    const Interval received = timeline_.ranks[rank_].instructions[index];
    if (received.begin.count() < 0) return;
    if (instruction.kind != InstructionKind::transfer) return;
    for (std::uint32_t k = 0; k < instruction.body.count; ++k) {
      const std::uint32_t transfer = instruction.body.first + k;
      const Matching::End sender = matching_.partner(rank_, transfer);
      if (program().transfers[transfer].is_send || !sender.exists()) continue;
      add_arrow(sender, instruction.stream, received);
    }
  }

  // An arrow that points back in time would be dropped: it ends when both ends have begun.
  void add_arrow(Matching::End sender, StreamId stream, Interval received) {
    const std::size_t source = sender.rank;
    const std::uint32_t index = matching_.instruction(source, sender.transfer);
    const Time sent = timeline_.ranks[source].instructions[index].begin;
    if (sent.count() < 0) return;
    const Instruction& send = program_.ranks[source].instructions[index];
    add_arrow_end('s', source, send.stream, sent);
    add_arrow_end('f', rank_, stream, std::max(sent, received.begin));
    ++arrows_;
  }

  void add_arrow_end(char phase, std::size_t rank, StreamId stream, Time at) {
    begin(phase, rank);
    fmt::format_to(std::back_inserter(out_), R"(,"tid":{},"id":{},"ts":)", stream, arrows_);
    append_microseconds(out_, at);
    out_ += R"(,"name":"message","cat":"message")";
    if (phase == 'f') out_ += R"(,"bp":"e")";
    end();
  }

  const Program& program_;
  const Timeline& timeline_;
  Matching matching_;
  std::string out_;
  std::size_t rank_ = 0;
  std::size_t arrows_ = 0;
  bool first_ = true;
};

}  // namespace

std::string trace_json(const DrawContext& run) {
  return Trace(run).write();
}

}  // namespace counterflow
