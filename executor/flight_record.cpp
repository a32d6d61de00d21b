#include "executor/flight_record.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

#include "executor/pickle_writer.h"
#include "executor/progress.h"
#include "scheduler/ir/instruction_text.h"
#include "scheduler/ir/schedule_file.h"

namespace counterflow::exec {
namespace {

// Of what has not begun more would only repeat the program.
constexpr std::size_t kMostNotBegun = 256;

// How PyTorch calls them, and how many bytes an element has.
struct ElementType {
  std::string_view name;
  std::int64_t bytes;
};

ElementType element_type(DataType type) {
  switch (type) {
    case DataType::bf16:
      return {"BFloat16", 2};
    case DataType::fp16:
      return {"Half", 2};
    case DataType::fp32:
      return {"Float", 4};
    case DataType::fp8:
      return {"Float8_e4m3fn", 1};
    case DataType::bytes:
      break;
  }
  return {"Byte", 1};
}

// What one entry says, whether a transfer or a collective.
struct Event {
  std::uint32_t instruction = 0;
  std::string group{};
  std::string description{};
  std::string members{};
  std::string name{};  // "send 0->1"
  std::string what{};  // the payload in words
  std::int64_t sequence = 0;
  std::int64_t input = 0;  // elements
  std::int64_t output = 0;
  std::string_view type{};
  bool is_p2p = false;
  Interval when{};
};

class Recorder {
 public:
  Recorder(const Program& program, const Matching& matching, Rank rank,
           const RankProgress& progress, const Failure& failure)
      : program_(program),
        matching_(matching),
        rank_(rank),
        list_(program.ranks[static_cast<std::size_t>(rank)]),
        progress_(progress),
        failure_(failure) {}

  std::string record() {
    collect();
    out_.open_dict();
    out_.member("version", "2.10").member("comm_lib_version", "counterflow");
    out_.member("rank", rank_);
    write_groups();
    out_.text("entries").open_list();
    for (std::size_t i = 0; i < begun_.size(); ++i) write(begun_[i], static_cast<std::int64_t>(i));
    out_.close_list();
    write_own();
    out_.close_dict();
    return out_.finish();
  }

 private:
  struct Group {
    std::string description, members;
    std::int64_t enqueued = 0, completed = 0;
  };

  void collect() {
    for (std::uint32_t i = 0; i < list_.instructions.size(); ++i) {
      const Instruction& what = list_.instructions[i];
      if (what.kind == InstructionKind::transfer) {
        for (std::uint32_t k = 0; k < what.body.count; ++k) add(transfer(i, what.body.first + k));
      } else if (what.kind == InstructionKind::collective) {
        add(collective(i, list_.collectives[what.body.first]));
      }
    }
    std::ranges::stable_sort(begun_, {}, [](const Event& event) { return event.when.begin; });
  }

  void add(Event event) {
    event.when = progress_.instructions[event.instruction];
    Group& group = groups_[event.group];
    group.description = event.description;
    group.members = event.members;
    if (event.when.begin == kNotYet) {
      ++not_begun_count_;
      if (not_begun_.size() < kMostNotBegun) not_begun_.push_back(std::move(event));
      return;
    }
    group.enqueued = std::max(group.enqueued, event.sequence);
    if (event.when.end != kNotYet) group.completed = std::max(group.completed, event.sequence);
    begun_.push_back(std::move(event));
  }

  [[nodiscard]] Event transfer(std::uint32_t i, std::uint32_t k) const {
    const Transfer& each = list_.transfers[k];
    const CommunicatorId id = list_.instructions[i].communicator;
    const Rank from = each.is_send ? rank_ : each.peer;
    const Rank to = each.is_send ? each.peer : rank_;
    // In a group of two, by ascending rank.
    const int source = from < to ? 0 : 1;
    Event event{.instruction = i};
    event.group = fmt::format("{}:{}>{}", id, from, to);
    event.description = name(program_.communicators[id].kind);
    event.members = fmt::format("[{}, {}]", std::min(from, to), std::max(from, to));
    event.name = each.is_send ? fmt::format("send {}->{}", source, 1 - source)
                              : fmt::format("recv {}<-{}", 1 - source, source);
    event.what = describe(each.payload);
    event.sequence = matching_.sequence(static_cast<std::size_t>(rank_), k) + std::int64_t{1};
    set_size(event, each.size, each.type, each.size);
    event.is_p2p = true;
    return event;
  }

  [[nodiscard]] Event collective(std::uint32_t i, const Collective& each) const {
    const CommunicatorId id = list_.instructions[i].communicator;
    const Communicator& communicator = program_.communicators[id];
    const auto size = static_cast<std::int64_t>(communicator.members.size());
    Event event{.instruction = i};
    event.group = fmt::format("{}", id);
    event.description = name(communicator.kind);
    event.members = fmt::format("[{}]", fmt::join(communicator.members, ", "));
    event.name = name(each.kind);
    event.what = called(list_, list_.instructions[i]);
    event.sequence = each.sequence + std::int64_t{1};
    set_size(event, each.size, DataType::bytes, each.size);
    const bool gathers = each.kind == CollectiveKind::all_gather;
    const bool scatters = each.kind == CollectiveKind::reduce_scatter;
    // The whole is at one side only; where it cannot be cut evenly, the "v" form has no rule for
    // it.
    if ((gathers || scatters) && event.input % size != 0) event.name += "_v";
    if (gathers) event.input /= size;
    if (scatters) event.output /= size;
    return event;
  }

  static void set_size(Event& event, Bytes input, DataType type, Bytes output) {
    ElementType element = element_type(type);
    if (input.value % element.bytes != 0) element = element_type(DataType::bytes);
    event.type = element.name;
    event.input = input.value / element.bytes;
    event.output = output.value / element.bytes;
  }

  void write_groups() {
    out_.text("pg_config").open_dict();
    for (const auto& [name, group] : groups_) {
      out_.text(name).open_dict();
      out_.member("name", name).member("desc", group.description).member("ranks", group.members);
      out_.close_dict();
    }
    out_.close_dict();
    out_.text("pg_status").open_dict();
    for (const auto& [name, group] : groups_) {
      out_.text(name).open_dict();
      out_.member("last_enqueued_collective", group.enqueued);
      out_.member("last_started_collective", group.enqueued);
      out_.member("last_completed_collective", group.completed);
      out_.close_dict();
    }
    out_.close_dict();
  }

  void write_time(std::string_view key, Time time) {
    out_.text(key);
    time == kNotYet ? out_.null() : out_.integer(progress_.start_ns + time.count());
  }

  void write_tensors(std::string_view which, std::int64_t elements, std::string_view type) {
    out_.text(fmt::format("{}_sizes", which)).open_list();
    out_.open_list().integer(elements).close_list();
    out_.close_list();
    out_.text(fmt::format("{}_dtypes", which)).open_list().text(type).close_list();
  }

  void write(const Event& event, std::int64_t record) {
    const bool begun = event.when.begin != kNotYet;
    const bool ended = event.when.end != kNotYet;
    out_.open_dict();
    out_.member("record_id", record).member("pg_id", 0);
    out_.text("process_group").open_tuple().text(event.group).text(event.description).close_tuple();
    out_.member("collective_seq_id", event.sequence).member("p2p_seq_id", event.sequence);
    out_.member("op_id", record);
    // torchfrtrace knows no backend of ours.
    out_.member("profiling_name", "gloo:" + event.name);
    write_time("time_created_ns", event.when.begin);
    write_time("time_discovered_started_ns", event.when.begin);
    write_time("time_discovered_completed_ns", event.when.end);
    write_tensors("input", event.input, event.type);
    write_tensors("output", event.output, event.type);
    out_.member("state", ended ? "completed" : begun ? "started" : "not_begun");
    out_.member("timeout_ms", 0);
    out_.text("is_p2p").boolean(event.is_p2p).text("retired").boolean(ended);
    out_.member("communicator", list_.instructions[event.instruction].communicator);
    const std::string op = to_string(list_.instructions[event.instruction].op);
    out_.text("frames").open_list().open_dict();
    out_.member("name", event.is_p2p ? fmt::format("{} ({})", op, event.what) : event.what);
    out_.member("filename", "program.json").member("line", event.instruction);
    out_.close_dict().close_list();
    out_.close_dict();
  }

  void write_failure() {
    out_.text("failure").open_dict();
    out_.member("rank", failure_.rank).member("instruction", failure_.instruction);
    const RankProgram& there = program_.ranks[static_cast<std::size_t>(failure_.rank)];
    out_.member("op", called(there, there.instructions[failure_.instruction]));
    out_.member("step", failure_.step).member("reason", failure_.reason).text("culprit");
    failure_.culprit ? out_.integer(*failure_.culprit) : out_.null();
    out_.close_dict();
  }

  // What runs, and on what it stands.
  void write_running() {
    out_.text("running").open_list();
    for (std::uint32_t i = 0; i < list_.instructions.size(); ++i) {
      const Instruction& what = list_.instructions[i];
      const Interval& when = progress_.instructions[i];
      if (what.kind != InstructionKind::run || when.begin == kNotYet || when.end != kNotYet) {
        continue;
      }
      out_.open_dict().member("instruction", i).member("op", to_string(what.op));
      out_.member("for_ns", (progress_.stopped - when.begin).count()).close_dict();
    }
    out_.close_list();
  }

  void write_own() {
    out_.text("counterflow").open_dict();
    out_.member("program_hash", fmt::format("{:016x}", hash(program_)));
    out_.member("step", progress_.step);
    write_failure();
    write_running();
    out_.member("not_begun_count", not_begun_count_);
    out_.text("not_begun").open_list();
    for (const Event& event : not_begun_) write(event, -1);
    out_.close_list();
    out_.close_dict();
  }

  const Program& program_;
  const Matching& matching_;
  const Rank rank_;
  const RankProgram& list_;
  const RankProgress& progress_;
  const Failure& failure_;
  std::map<std::string, Group> groups_;
  std::vector<Event> begun_;      // by when they began
  std::vector<Event> not_begun_;  // the first of them, in issue order
  std::int64_t not_begun_count_ = 0;
  PickleWriter out_;
};

}  // namespace

std::string flight_record(const Program& program, const Matching& matching, Rank rank,
                          const RankProgress& progress, const Failure& failure) {
  return Recorder(program, matching, rank, progress, failure).record();
}

}  // namespace counterflow::exec
