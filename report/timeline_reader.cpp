#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "report/compute_time.h"
#include "report/drawing.h"
#include "report/json/reader.h"
#include "report/report_json.h"
#include "scheduler/graph/digraph.h"
#include "scheduler/ir/schedule_file.h"

// A timeline is believed as far as it agrees with itself: figures are compared, drawn and exported
// from the file alone, so one that was changed by hand or cut short must not pass.
namespace counterflow {
namespace {

constexpr std::size_t kBoxColumns = 6;
constexpr double kRounding = 1e-9;  // of fractions
// Sums and differences of such times fit.
constexpr std::int64_t kMaxTime = std::int64_t{1} << 62U;

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

// A transfer may let its stream go on while its message is under way.
bool holds_stream(const Box& box) {
  return box.kind != InstructionKind::transfer;
}

// Reads the instructions of one rank in issue order.
class BoxReader {
 public:
  BoxReader(const Report& report, Lane& lane)
      : report_(report), lane_(lane), free_at_(lane.streams.size(), 0) {}

  void read(json::Row& row) {
    Box box;
    box.stream = row.integer_as<StreamId>(0, static_cast<std::int64_t>(free_at_.size()) - 1);
    box.kind = static_cast<InstructionKind>(
        row.integer(0, static_cast<std::int64_t>(InstructionKind::step_end)));
    box.ops.first = static_cast<std::uint32_t>(lane_.ops.size());
    row.ops(lane_.ops);
    box.ops.count = static_cast<std::uint32_t>(lane_.ops.size()) - box.ops.first;
    check_ops(row, box);
    box.when = read_interval(row, box);
    box.bytes = Bytes{row.integer(0)};
    lane_.boxes.push_back(box);
  }

 private:
  void check_ops(const json::Row& row, const Box& box) const {
    for (const Op& op : lane_.ops_of(box)) {
      if (op.stage >= report_.stages) {
        row.fail(fmt::format("{} is of stage {}, but the report has {} stages, from 0",
                             to_string(op), op.stage, report_.stages));
      }
      if (has_microbatch(op.kind) && op.microbatch >= report_.microbatches) {
        row.fail(fmt::format("{} is of microbatch {}, but the report has {} microbatches, from 0",
                             to_string(op), op.microbatch, report_.microbatches));
      }
    }
  }

  // An in-order stream begins nothing before what holds it has ended. Of transfers no more is
  // known: they are shown from when their message moves.
  Interval read_interval(json::Row& row, const Box& box) {
    const Time begin{row.integer(-1, kMaxTime)};
    const bool ran = begin >= Time{0};
    std::int64_t& free_at = free_at_[box.stream];
    if (ran && begin.count() < free_at) {
      row.fail(fmt::format("begins at {} ns, before its stream is free at {} ns", begin.count(),
                           free_at));
    }
    const Time end{row.integer(begin.count(), ran ? kMaxTime : begin.count())};
    if (ran && holds_stream(box)) free_at = end.count();
    return {begin, end};
  }

  const Report& report_;
  Lane& lane_;
  std::vector<std::int64_t> free_at_;  // [stream] in ns
};

Lane read_lane(const json::Node& node, const Report& report) {
  Lane lane;
  lane.streams = read_streams(node.at("streams"));
  if (node.has("memory_limit_bytes")) {
    lane.memory_limit = Bytes{node.at("memory_limit_bytes").integer(0)};
  }
  const json::Node boxes = node.at("instructions");
  lane.boxes.reserve(boxes.size());
  BoxReader reader(report, lane);
  boxes.for_each_row(kBoxColumns, [&](json::Row& row) { reader.read(row); });
  Time last{0};
  node.at("memory").for_each_row(2, [&](json::Row& row) {
    last = Time{row.integer(last.count(), kMaxTime)};
    lane.memory.push_back({last, Bytes{row.integer(0)}});
  });
  return lane;
}

// An event of the own rank was recorded before whoever waits for it began; a message comes from
// another rank's transfer, whose clock may be another.
void check_wait(const json::Row& row, std::size_t rank, const Wait& wait,
                const std::vector<Lane>& lanes) {
  const Box& waits = lanes[rank].boxes[wait.instruction];
  const Box& on = lanes[wait.rank].boxes[wait.on];
  if (wait.rank != rank) {
    if (waits.kind == InstructionKind::transfer && on.kind == InstructionKind::transfer) return;
    row.fail("only a transfer waits for another rank, and only for a transfer");
  }
  if (wait.on >= wait.instruction) {
    row.fail(fmt::format("instruction {} waits for {} of its own rank, which is not before it",
                         wait.instruction, wait.on));
  }
  if (waits.when.begin < Time{0}) return;
  if (on.when.begin < Time{0}) row.fail("what it waits for never ran");
  if (on.when.end > waits.when.begin) {
    row.fail(fmt::format("what it waits for ends at {} ns, after it began at {} ns",
                         on.when.end.count(), waits.when.begin.count()));
  }
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
    check_wait(row, rank, lane.waits.back(), lanes);
  });
}

// Begin and end of every instruction, and what each follows: of its stream, its events, the sends
// of its messages.
class WaitOrder {
 public:
  explicit WaitOrder(const std::vector<Lane>& lanes) {
    for (const Lane& lane : lanes) {
      bases_.push_back(size_);
      size_ += static_cast<Vertex>(lane.boxes.size());
    }
    for (std::size_t rank = 0; rank < lanes.size(); ++rank) add(lanes[rank], rank);
    graph_ = std::move(builder_).build(2 * size_);
  }

  // An instruction that waits for itself, by its rank and index; nothing if none does.
  [[nodiscard]] std::optional<std::pair<std::size_t, std::size_t>> on_a_cycle() const {
    if (topological_order(graph_).size() == 2 * std::size_t{size_}) return std::nullopt;
    const Vertex flat = find_cycle(graph_).front().vertex / 2;
    std::size_t rank = 0;
    while (rank + 1 < bases_.size() && bases_[rank + 1] <= flat) ++rank;
    return std::pair(rank, std::size_t{flat - bases_[rank]});
  }

 private:
  [[nodiscard]] Vertex begin_of(std::size_t rank, std::size_t index) const {
    return 2 * (bases_[rank] + static_cast<Vertex>(index));
  }
  [[nodiscard]] Vertex end_of(std::size_t rank, std::size_t index) const {
    return begin_of(rank, index) + 1;
  }

  void add(const Lane& lane, std::size_t rank) {
    std::vector<Vertex> last(lane.streams.size(), kNone);
    for (std::size_t i = 0; i < lane.boxes.size(); ++i) {
      const Box& box = lane.boxes[i];
      builder_.add(begin_of(rank, i), end_of(rank, i), Reason::begin);
      const bool whole = holds_stream(box);
      const Vertex before =
          std::exchange(last[box.stream], whole ? end_of(rank, i) : begin_of(rank, i));
      if (before != kNone) builder_.add(before, begin_of(rank, i), Reason::stream);
    }
    for (const Wait& wait : lane.waits) {
      if (wait.rank == rank) {
        builder_.add(end_of(rank, wait.on), begin_of(rank, wait.instruction), Reason::event);
      } else {
        builder_.add(begin_of(wait.rank, wait.on), end_of(rank, wait.instruction), Reason::peer);
      }
    }
  }

  std::vector<Vertex> bases_;  // [rank] its first instruction, counted over all ranks
  Vertex size_ = 0;            // instructions
  DigraphBuilder builder_;
  Digraph graph_;
};

void check_cycles(const json::Node& ranks, const std::vector<Lane>& lanes) {
  if (const auto place = WaitOrder(lanes).on_a_cycle()) {
    ranks.at(place->first)
        .at("instructions")
        .at(place->second)
        .fail("waits for itself, in a cycle");
  }
}

// The figures that follow from the instructions and samples of a timeline.
Report measured(const std::vector<Lane>& lanes) {
  Report report;
  Totals totals;
  for (const Lane& lane : lanes) {
    ComputeTime time;
    for (const Box& box : lane.boxes) {
      if (box.kind != InstructionKind::run || box.ops.count == 0 || !lane.on_compute_stream(box)) {
        continue;
      }
      time.add(lane.ops_of(box).front().kind, box.when);
    }
    const auto compute = std::move(time).report();
    RankReport rank = compute.value_or(RankReport{});
    if (compute) totals.add(rank);
    for (const MemorySample& sample : lane.memory) {
      rank.peak_memory = std::max(rank.peak_memory, sample.held);
    }
    report.per_rank.push_back(rank);
  }
  totals.write(report);
  return report;
}

void require(const json::Node& figure, std::int64_t right) {
  if (figure.integer() == right) return;
  figure.fail(fmt::format("is {}, but the timeline gives {}; write the file again with counterflow",
                          figure.integer(), right));
}

void require(const json::Node& figure, double right) {
  if (std::abs(figure.number() - right) <= kRounding) return;
  figure.fail(fmt::format("is {}, but the timeline gives {}; write the file again with counterflow",
                          figure.number(), right));
}

void check_gap(const json::Node& node) {
  const auto bound = static_cast<double>(node.at("lower_bound_ns").integer());
  if (bound <= 0) return;
  const double gap = node.at("gap").number();
  const double right = static_cast<double>(node.at("makespan_ns").integer()) / bound - 1;
  if (std::abs(gap - right) <= kRounding * (1 + std::abs(right))) return;
  node.at("gap").fail(fmt::format(
      "is {}, but the makespan and the bound give {}; write the file again with counterflow", gap,
      right));
}

void check_figures(const json::Node& node, const std::vector<Lane>& lanes) {
  const Report right = measured(lanes);
  for (std::size_t r = 0; r < lanes.size(); ++r) {
    const json::Node rank = node.at("per_rank").at(r);
    require(rank.at("busy_ns"), right.per_rank[r].busy.count());
    require(rank.at("idle_ns"), right.per_rank[r].idle.count());
    require(rank.at("first_start_ns"), right.per_rank[r].first_start.count());
    require(rank.at("last_end_ns"), right.per_rank[r].last_end.count());
    // Not every writer knows of memory.
    if (lanes[r].memory.empty()) continue;
    require(rank.at("peak_memory_bytes"), right.per_rank[r].peak_memory.value);
  }
  require(node.at("makespan_ns"), right.makespan.count());
  require(node.at("span_ns"), right.span.count());
  require(node.at("bubble_fraction"), right.bubble_fraction);
  require(node.at("span_bubble_fraction"), right.span_bubble_fraction);
  check_gap(node);
}

}  // namespace

Drawing parse_timeline_json(std::string_view text, const std::string& file) {
  const nlohmann::json document = json::parse(text, file);
  const json::Node root(document, file);
  (void)root.at("schema_version").integer(kSchemaVersion, kSchemaVersion);
  Drawing drawing;
  drawing.report = read_report(root.at("report"));
  const json::Node ranks = root.at("ranks");
  if (ranks.size() != drawing.report.per_rank.size()) {
    ranks.fail("expected as many ranks as the report has");
  }
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    drawing.lanes.push_back(read_lane(ranks.at(r), drawing.report));
  }
  for (std::size_t r = 0; r < ranks.size(); ++r) read_waits(ranks.at(r), r, drawing.lanes);
  check_cycles(ranks, drawing.lanes);
  check_figures(root.at("report"), drawing.lanes);
  return drawing;
}

}  // namespace counterflow
