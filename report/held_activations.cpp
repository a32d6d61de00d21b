#include "report/held_activations.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "report/stage_copies.h"

namespace counterflow {
namespace {

// Instants at which a count goes up or down, and the peak that follows from them.
class Counter {
 public:
  void begin(Time at) { begins_.push_back(at.count()); }
  void end(Time at) { ends_.push_back(at.count()); }

  [[nodiscard]] std::int64_t peak() {
    sort_if_needed(begins_);
    sort_if_needed(ends_);
    std::int64_t most = 0;
    std::size_t ended = 0;
    for (std::size_t begun = 0; begun < begins_.size(); ++begun) {
      while (ended < ends_.size() && ends_[ended] <= begins_[begun]) ++ended;
      most =
          std::max(most, static_cast<std::int64_t>(begun + 1) - static_cast<std::int64_t>(ended));
    }
    return most;
  }

 private:
  // In issue order they mostly are sorted.
  static void sort_if_needed(std::vector<std::int64_t>& times) {
    if (!std::is_sorted(times.begin(), times.end())) std::sort(times.begin(), times.end());
  }
  std::vector<std::int64_t> begins_;
  std::vector<std::int64_t> ends_;
};

// Which backward ops the program has for one copy of a stage.
struct Backward {
  bool full = false;
  bool input = false;
  bool weight = false;
  [[nodiscard]] bool any() const { return full || input || weight; }
  void add(OpKind kind) {
    full |= kind == OpKind::backward;
    input |= kind == OpKind::backward_input;
    weight |= kind == OpKind::backward_weight;
  }
};

class HeldCount {
 public:
  HeldCount(const RankProgram& rank, const RankTimeline& timeline)
      : rank_(rank), timeline_(timeline), copies_(rank), backward_(copies_.size()) {
    for (const Instruction& i : rank.instructions) {
      if (i.kind != InstructionKind::run) continue;
      learn(i.op);
      learn(i.paired);
    }
    trained_.assign(microbatches_, 0);
    for (const Instruction& i : rank.instructions) {
      if (i.kind != InstructionKind::run) continue;
      for (const Op& op : {i.op, i.paired}) {
        if (is_backward(op.kind)) trained_[static_cast<std::size_t>(op.microbatch)] = 1;
      }
    }
    first_half_end_.assign(backward_.size() * microbatches_, -1);
  }

  [[nodiscard]] HeldPeaks count() {
    for (std::size_t i = 0; i < rank_.instructions.size(); ++i) {
      const Instruction& instruction = rank_.instructions[i];
      const Interval when = timeline_.instructions[i];
      if (instruction.kind != InstructionKind::run || when.begin.count() < 0) continue;
      add(instruction.op, when);
      add(instruction.paired, when);
    }
    return {activations_.peak(), in_flight_.peak()};
  }

 private:
  [[nodiscard]] std::size_t chunk(const Op& op) const { return copies_.of(op); }

  void learn(const Op& op) {
    if (op.kind == OpKind::none) return;
    backward_[chunk(op)].add(op.kind);
    microbatches_ = std::max(microbatches_, static_cast<std::size_t>(op.microbatch) + 1);
  }

  void add(const Op& op, Interval when) {
    if (op.kind == OpKind::forward) {
      begin_forward(op, when);
    } else if (op.kind == OpKind::backward) {
      activations_.end(when.end);
      in_flight_.end(when.end);
    } else if (op.kind == OpKind::backward_input) {
      in_flight_.end(when.end);
      end_half(op, when.end, backward_[chunk(op)].weight);
    } else if (op.kind == OpKind::backward_weight) {
      const bool has_input = backward_[chunk(op)].input;
      if (!has_input) in_flight_.end(when.end);
      end_half(op, when.end, has_input);
    }
  }

  void begin_forward(const Op& op, Interval when) {
    activations_.begin(when.begin);
    in_flight_.begin(when.begin);
    const bool trained = trained_[static_cast<std::size_t>(op.microbatch)] != 0;
    if (trained && backward_[chunk(op)].any()) return;
    activations_.end(when.end);
    in_flight_.end(when.end);
  }

  // One of I and W ended: the activation goes with the later of the two, if there are two.
  void end_half(const Op& op, Time end, bool has_other_half) {
    std::int64_t& first =
        first_half_end_[chunk(op) * microbatches_ + static_cast<std::size_t>(op.microbatch)];
    if (!has_other_half) {
      activations_.end(end);
    } else if (first < 0) {
      first = end.count();
    } else {
      activations_.end(std::max(end, Time{first}));
    }
  }

  const RankProgram& rank_;
  const RankTimeline& timeline_;
  const StageCopies copies_;
  std::vector<Backward> backward_;  // [chunk]
  std::size_t microbatches_ = 0;
  std::vector<std::uint8_t> trained_;         // [microbatch] 1: has a backward on this rank
  std::vector<std::int64_t> first_half_end_;  // [chunk][microbatch], -1: neither I nor W has ended
  Counter activations_;
  Counter in_flight_;
};

}  // namespace

HeldPeaks held_peaks(const RankProgram& rank, const RankTimeline& timeline) {
  return HeldCount(rank, timeline).count();
}

}  // namespace counterflow
