#include <algorithm>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "report/compute_time.h"
#include "report/exposed_communication.h"
#include "report/held_activations.h"
#include "report/report.h"
#include "report/stage_copies.h"

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

// busy, first_start and last_end; nothing if the rank computed nothing.
std::optional<RankReport> measure_compute(const RankProgram& rank, const RankTimeline& timeline) {
  ComputeTime time;
  for (std::size_t i = 0; i < rank.instructions.size(); ++i) {
    const Instruction& instruction = rank.instructions[i];
    if (instruction.kind != InstructionKind::run || !on_compute_stream(rank, instruction)) continue;
    time.add(instruction.op.kind, timeline.instructions[i]);
  }
  return std::move(time).report();
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

// When the last optimizer step, or its validation, ends, if there is one. One that a schedule file
// names has no gradients and no cost: it marks a place in the order.
std::optional<Time> end_of_steps(const Program& program, const Timeline& timeline) {
  std::optional<Time> last;
  for (std::size_t r = 0; r < program.ranks.size(); ++r) {
    const auto& instructions = program.ranks[r].instructions;
    for (std::size_t i = 0; i < instructions.size(); ++i) {
      const OpKind kind = instructions[i].op.kind;
      if (kind != OpKind::optimizer_step && kind != OpKind::validate_step) continue;
      if (instructions[i].body.count == 0) continue;
      last = std::max(last.value_or(Time{0}), timeline.ranks[r].instructions[i].end);
    }
  }
  return last;
}

// Where parameters are sharded a step begins with the first gather.
Time begin_of_step(const Program& program, const Timeline& timeline, Time first_compute) {
  Time first = first_compute;
  for (std::size_t r = 0; r < program.ranks.size(); ++r) {
    const RankProgram& rank = program.ranks[r];
    for (std::size_t i = 0; i < rank.instructions.size(); ++i) {
      const Instruction& instruction = rank.instructions[i];
      if (instruction.op.kind != OpKind::unshard || on_compute_stream(rank, instruction)) continue;
      const Time begin = timeline.ranks[r].instructions[i].begin;
      if (begin >= Time{0}) first = std::min(first, begin);
    }
  }
  return first;
}

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
    rank.stages_held = static_cast<int>(StageCopies(program.ranks[r]).size());
    report.per_rank.push_back(rank);
  }
  totals.write(report);
  if (const auto end = end_of_steps(program, timeline)) {
    report.step = *end - begin_of_step(program, timeline, totals.first());
  }
  return report;
}

}  // namespace counterflow
