#include <algorithm>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <vector>

#include "report/exposed_communication.h"
#include "report/held_activations.h"
#include "report/report.h"

namespace counterflow {
namespace {

void require_same_shape(const Program& program, const Timeline& timeline) {
  bool same = program.ranks.size() == timeline.ranks.size();
  for (std::size_t r = 0; same && r < program.ranks.size(); ++r) {
    same = program.ranks[r].instructions.size() == timeline.ranks[r].instructions.size();
  }
  if (!same) throw std::invalid_argument("the timeline is not one of this program");
}

bool on_compute_stream(const RankProgram& rank, const Instruction& instruction) {
  const StreamRole role = rank.streams[instruction.stream].role;
  return role == StreamRole::compute || role == StreamRole::second_compute;
}

// The step ends with these, whatever a compute stream does afterwards.
bool is_pipeline_work(OpKind kind) {
  return kind == OpKind::forward || is_backward(kind);
}

// Length of the union of intervals.
Time covered(std::vector<Interval>& intervals) {
  const auto earlier = [](const Interval& a, const Interval& b) { return a.begin < b.begin; };
  if (!std::is_sorted(intervals.begin(), intervals.end(), earlier)) {
    std::sort(intervals.begin(), intervals.end(), earlier);
  }
  Time sum{0};
  Time reached = intervals.empty() ? Time{0} : intervals.front().begin;
  for (const Interval& interval : intervals) {
    if (interval.end <= reached) continue;
    sum += interval.end - std::max(interval.begin, reached);
    reached = interval.end;
  }
  return sum;
}

// busy, first_start and last_end; nothing if the rank computed nothing.
std::optional<RankReport> measure_compute(const RankProgram& rank, const RankTimeline& timeline) {
  std::vector<Interval> work;
  work.reserve(rank.instructions.size());
  std::optional<Interval> extent;
  for (std::size_t i = 0; i < rank.instructions.size(); ++i) {
    const Instruction& instruction = rank.instructions[i];
    const Interval when = timeline.instructions[i];
    if (instruction.kind != InstructionKind::run || !is_compute(instruction.op.kind) ||
        when.begin.count() < 0 || !on_compute_stream(rank, instruction)) {
      continue;
    }
    work.push_back(when);
    if (!is_pipeline_work(instruction.op.kind)) continue;
    if (!extent) extent = when;
    extent->begin = std::min(extent->begin, when.begin);
    extent->end = std::max(extent->end, when.end);
  }
  if (!extent) return std::nullopt;
  RankReport report;
  report.busy = covered(work);
  report.first_start = extent->begin;
  report.last_end = extent->end;
  return report;
}

// How many copies of stages the rank computes for.
int stages_held(const RankProgram& rank, int stages) {
  std::vector<std::uint8_t> held(2 * static_cast<std::size_t>(stages));
  for (const Instruction& instruction : rank.instructions) {
    if (instruction.kind != InstructionKind::run) continue;
    for (const Op& op : {instruction.op, instruction.paired}) {
      if (op.kind == OpKind::none || op.stage >= stages) continue;
      held[2 * std::size_t{op.stage} + op.replica] = 1;
    }
  }
  return static_cast<int>(std::count(held.begin(), held.end(), std::uint8_t{1}));
}

// The stages with ops of a kind.
std::vector<Stage> stages_with(const Program& program, OpKind kind) {
  std::vector<std::uint8_t> found(static_cast<std::size_t>(program.stages));
  for (const RankProgram& rank : program.ranks) {
    for (const Instruction& i : rank.instructions) {
      if (i.kind == InstructionKind::run && i.op.kind == kind && i.op.stage < program.stages) {
        found[i.op.stage] = 1;
      }
    }
  }
  std::vector<Stage> stages;
  for (Stage s = 0; s < program.stages; ++s) {
    if (found[static_cast<std::size_t>(s)] != 0) stages.push_back(s);
  }
  return stages;
}

double share(Time part, Time whole) {
  return whole.count() == 0
             ? 0
             : static_cast<double>(part.count()) / static_cast<double>(whole.count());
}

// The figures over all ranks, from those of each.
class Totals {
 public:
  void add(const RankReport& rank) {
    first_ = any_ ? std::min(first_, rank.first_start) : rank.first_start;
    last_ = any_ ? std::max(last_, rank.last_end) : rank.last_end;
    any_ = true;
    const Time span = rank.last_end - rank.first_start;
    const Time idle = span - rank.busy;
    // Of ranks that are equally long, the one that idles most.
    if (span > span_ || (span == span_ && idle > span_idle_)) {
      span_ = span;
      span_idle_ = idle;
    }
  }

  void write(Report& report) const {
    report.makespan = last_ - first_;
    report.span = span_;
    report.span_bubble_fraction = share(span_idle_, span_);
    double idle = 0;
    for (RankReport& rank : report.per_rank) {
      rank.idle = report.makespan - rank.busy;
      idle += static_cast<double>(rank.idle.count());
    }
    if (report.makespan.count() > 0) {
      report.bubble_fraction = idle / (static_cast<double>(report.per_rank.size()) *
                                       static_cast<double>(report.makespan.count()));
    }
  }

 private:
  bool any_ = false;
  Time first_{0};
  Time last_{0};
  Time span_{0};
  Time span_idle_{0};
};

}  // namespace

Report measure(const Program& program, const Timeline& timeline) {
  require_same_shape(program, timeline);
  Report report;
  report.ranks = static_cast<int>(program.ranks.size());
  report.stages = program.stages;
  report.microbatches = program.microbatches;
  report.recompute = stages_with(program, OpKind::recompute);
  report.offload = stages_with(program, OpKind::offload);
  const Matching matching(program);
  Totals totals;
  for (std::size_t r = 0; r < program.ranks.size(); ++r) {
    const auto compute = measure_compute(program.ranks[r], timeline.ranks[r]);
    RankReport rank = compute.value_or(RankReport{});
    if (compute) totals.add(rank);
    const HeldPeaks held = held_peaks(program.ranks[r], timeline.ranks[r]);
    rank.peak_activations = held.activations;
    rank.peak_in_flight = held.in_flight;
    for (const MemorySample& sample : timeline.ranks[r].memory) {
      rank.peak_memory = std::max(rank.peak_memory, sample.held);
    }
    rank.comm_exposed = exposed_communication(program, timeline, matching, r);
    rank.stages_held = stages_held(program.ranks[r], program.stages);
    report.per_rank.push_back(rank);
  }
  totals.write(report);
  return report;
}

}  // namespace counterflow
