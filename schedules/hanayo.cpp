#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "scheduler/ir/placement.h"
#include "schedules/families.h"
#include "schedules/turns.h"

// Hanayo: microbatches in waves over a zig-zag placement. No order is published; this one is list
// scheduled with F = 1 and B = 2, forward and backward in turn like 1F1B, within v*p held chunks.
namespace counterflow {
namespace {

constexpr int kForwardSlots = 1;
constexpr int kBackwardSlots = 2;

class WaveScheduler {
 public:
  explicit WaveScheduler(const Shape& shape)
      : placement_(PlacementKind::wave, shape.ranks, shape.chunks),
        microbatches_(shape.microbatches),
        capacity_(shape.chunks * shape.ranks),
        stages_(static_cast<std::size_t>(placement_.stages())),
        ranks_(static_cast<std::size_t>(shape.ranks)) {
    for (StageState& stage : stages_) {
      stage.forward_ends.reserve(static_cast<std::size_t>(microbatches_));
      stage.backward_ends.reserve(static_cast<std::size_t>(microbatches_));
    }
  }

  Schedule run() {
    Schedule schedule;
    schedule.ranks.resize(ranks_.size());
    std::size_t left = 2 * stages_.size() * static_cast<std::size_t>(microbatches_);
    for (int now = 0; left > 0; ++now) {
      for (std::size_t r = 0; r < ranks_.size(); ++r) {
        if (ranks_[r].busy_until > now) continue;
        const Op op = choose(static_cast<Rank>(r), now);
        if (op.kind == OpKind::none) continue;
        start(op, static_cast<Rank>(r), now);
        schedule.ranks[r].push_back({op, {}});
        --left;
      }
    }
    return schedule;
  }

 private:
  // A stage takes its microbatches in order, so how many it has done says which is next.
  struct StageState {
    std::vector<int> forward_ends;
    std::vector<int> backward_ends;
  };
  struct RankState {
    OpKind last = OpKind::forward;
    int busy_until = 0;
    int held = 0;  // chunks whose forward has begun and whose backward has not ended
  };

  static Microbatch next_of(const std::vector<int>& ends) {
    return static_cast<Microbatch>(ends.size());
  }
  static bool done_by(const std::vector<int>& ends, std::size_t microbatch, int now) {
    return microbatch < ends.size() && ends[microbatch] <= now;
  }
  [[nodiscard]] const StageState& at(Stage stage) const {
    return stages_[static_cast<std::size_t>(stage)];
  }
  [[nodiscard]] bool backward_ready(Stage stage, int now) const {
    const std::size_t next = at(stage).backward_ends.size();
    const bool is_last = stage + 1 == placement_.stages();
    return done_by(is_last ? at(stage).forward_ends : at(stage + 1).backward_ends, next, now);
  }
  [[nodiscard]] bool forward_ready(Stage stage, int now) const {
    const std::size_t next = at(stage).forward_ends.size();
    if (next >= static_cast<std::size_t>(microbatches_)) return false;
    return stage == 0 || done_by(at(stage - 1).forward_ends, next, now);
  }
  // Leaves room for the microbatch furthest back on this rank to pass all its chunks, so that
  // memory never stops the pipeline.
  [[nodiscard]] bool has_room(Rank rank, Stage stage) const {
    const auto chunks = placement_.chunks_of(rank);
    std::size_t oldest = at(stage).forward_ends.size();
    for (const Chunk& chunk : chunks) {
      oldest = std::min(oldest, at(chunk.stage).forward_ends.size());
    }
    int needed = 0;
    for (const Chunk& chunk : chunks) {
      if (at(chunk.stage).forward_ends.size() == oldest) ++needed;
    }
    if (at(stage).forward_ends.size() == oldest) --needed;
    return ranks_[static_cast<std::size_t>(rank)].held + 1 + needed <= capacity_;
  }

  // When the op would begin if a microbatch entered each time a rank has done its share of one and
  // none ever waited: the least is the most urgent.
  [[nodiscard]] std::int64_t due(const Op& op) const {
    const std::int64_t stages = placement_.stages();
    const std::int64_t entry = (stages / placement_.ranks()) *
                               std::int64_t{kForwardSlots + kBackwardSlots} * op.microbatch;
    return op.kind == OpKind::forward
               ? entry + std::int64_t{kForwardSlots} * op.stage
               : entry + kForwardSlots * stages + kBackwardSlots * (stages - 1 - op.stage);
  }

  // Forward and backward in turn where both are ready, of each kind the most urgent.
  [[nodiscard]] Op choose(Rank rank, int now) const {
    Op best;
    const OpKind last = ranks_[static_cast<std::size_t>(rank)].last;
    const auto key = [&](const Op& op) { return std::pair(op.kind == last, due(op)); };
    const auto consider = [&](const Op& op) {
      if (best.kind == OpKind::none || key(op) < key(best)) best = op;
    };
    for (const auto [stage, replica] : placement_.chunks_of(rank)) {
      if (backward_ready(stage, now)) {
        consider(compute_op(OpKind::backward, stage, next_of(at(stage).backward_ends)));
      }
      if (forward_ready(stage, now) && has_room(rank, stage)) {
        consider(compute_op(OpKind::forward, stage, next_of(at(stage).forward_ends)));
      }
    }
    return best;
  }

  void start(const Op& op, Rank rank, int now) {
    StageState& stage = stages_[op.stage];
    RankState& state = ranks_[static_cast<std::size_t>(rank)];
    const bool is_forward = op.kind == OpKind::forward;
    state.busy_until = now + (is_forward ? kForwardSlots : kBackwardSlots);
    state.last = op.kind;
    state.held += is_forward ? 1 : -1;  // the rank is busy until the memory is free
    (is_forward ? stage.forward_ends : stage.backward_ends).push_back(state.busy_until);
  }

  Placement placement_;
  int microbatches_;
  int capacity_;
  std::vector<StageState> stages_;
  std::vector<RankState> ranks_;
};

Schedule generate_hanayo(const Shape& shape) {
  return WaveScheduler(shape).run();
}

std::optional<std::string> refuse(const Shape& shape) {
  if (shape.chunks % 2 == 0) return std::nullopt;
  const std::string choice = shape.chunks == 1
                                 ? std::string("2")
                                 : fmt::format("{} or {}", shape.chunks - 1, shape.chunks + 1);
  return fmt::format(
      "hanayo takes an even number of stages per rank, two for each wave; {} is odd: use {}",
      shape.chunks, choice);
}

}  // namespace

Family hanayo() {
  return {.name = "hanayo",
          .title = "Hanayo",
          .aliases = {"wave"},
          .summary = "1F1B in waves over a zig-zag placement.",
          .constraints = "an even number of stages a rank",
          .formula_text = "",
          .source = "Hanayo, arXiv 2308.15762; the order is our own list schedule",
          .placement = PlacementKind::wave,
          .default_chunks = 2,
          .takes_chunks = true,
          .refuse = refuse,
          .generate = generate_hanayo};
}

}  // namespace counterflow
