#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/ir/op.h"
#include "scheduler/ir/placement.h"
#include "scheduler/ir/schedule.h"
#include "scheduler/ir/stage_graph.h"
#include "scheduler/ir/units.h"
#include "scheduler/problem/compression.h"
#include "scheduler/problem/costs.h"
#include "scheduler/problem/keeping.h"
#include "scheduler/problem/links.h"
#include "scheduler/problem/optimizer.h"
#include "scheduler/problem/phase.h"

namespace counterflow {

// How the backward of a stage is cut. `automatic`: as the schedule family says.
enum class SplitBackward : std::uint8_t { automatic, split, full };

// What a stage-microbatch occupies from the begin of its F; `kept_for_weight` of it stays until the
// end of W, the rest until the end of I. Between F and the backward it may be less: see Keeping.
struct StageMemory {
  Bytes activation;
  Bytes kept_for_weight;
};

struct MemoryLimits {
  // One entry a rank; empty: no limit.
  std::vector<Bytes> bytes;
  std::vector<std::int64_t> activations;  // counted like peak_activations
  std::vector<Bytes> static_memory;       // one entry a rank; weights, gradients, optimizer state
};

// Everything a schedule is made for, checked: who feeds whom, where stages live, what each op costs
// and occupies, what the links and the memory allow. All entries are complete: lists have one entry
// a stage, a rank or a microbatch, as named.
struct Problem {
  Placement placement;
  StageGraph graph;
  int microbatches = 0;
  int steps = 1;  // consecutive ones, each of as many microbatches; phases are those of all
  SplitBackward split_backward = SplitBackward::automatic;
  bool forward_only = false;  // with phases: none of them trains
  std::vector<Phase> phases;  // in order, all microbatches; empty: one pass
  int group_size = 0;         // interleaved families; 0: the family's default
  Costs costs;
  std::vector<StageMemory> memory;  // [stage]
  std::vector<Keeping> keeping;     // [stage]; empty: every stage keeps everything
  // [stage] what a search may put there, beside keeping everything; empty: no choice.
  // `with_keeping` makes a choice, whose times then stand in the costs.
  std::vector<std::vector<Keeping>> keeping_options;
  std::vector<std::uint8_t> frozen;  // [stage] 1: no weight gradient
  Links links;
  std::vector<Bytes>
      message;              // [stage] size of the output of F (and of the gradient that comes back)
  Compression compression;  // how these travel; what packing costs is in the costs already
  MemoryLimits limits;
  std::optional<Optimizer> optimizer;  // what follows the last gradient; absent: nothing does

  [[nodiscard]] int ranks() const { return placement.ranks(); }
  [[nodiscard]] int stages() const { return placement.stages(); }

  // Index of the phase of a microbatch, 0 where there are none. O(log phases).
  [[nodiscard]] std::size_t phase_of(Microbatch microbatch) const;
  // Which of the steps a microbatch belongs to.
  [[nodiscard]] int step_of(Microbatch microbatch) const {
    return microbatch / (microbatches / steps);
  }
  // Does the microbatch have a backward?
  [[nodiscard]] bool trains(Microbatch microbatch) const {
    return !forward_only && (phases.empty() || phases[phase_of(microbatch)].trains());
  }
  // The problem of one phase alone, its microbatches numbered from 0. O(size of the problem).
  [[nodiscard]] Problem only(const Phase& phase) const;

  // The copy of the stages a microbatch flows through. Of each phase the copies of the placement
  // take equal parts, one after the other; of a part of n microbatches with a bidirectional
  // placement the first ceil(n/2) take replica 0 and the rest replica 1.
  [[nodiscard]] int replica_of(Microbatch microbatch) const {
    if (placement.replicas() < 2) return 0;
    const Phase whole =
        phases.empty() ? Phase{PhaseKind::train, 0, microbatches} : phases[phase_of(microbatch)];
    const int part = whole.count / placement.copies();
    const int copy = placement.copies() == 1 ? 0 : (microbatch - whole.first) / part;
    if (placement.directions() == 1) return copy;
    const bool back = microbatch - whole.first - copy * part >= (part + 1) / 2;
    return 2 * copy + (back ? 1 : 0);
  }
  // Does the stage compute weight gradients (not frozen, not forward-only)?
  [[nodiscard]] bool needs_backward_weight(Stage stage) const {
    return !forward_only && frozen[static_cast<std::size_t>(stage)] == 0;
  }
  // Does a gradient flow back through the stage: is it, or anything it is fed by, trainable? O(1)
  // for a stage that is not frozen, O(S) for one that is.
  [[nodiscard]] bool needs_backward_input(Stage stage) const;
  // The same for one microbatch, which may be of a phase that does not train.
  [[nodiscard]] bool needs_backward_weight(Stage stage, Microbatch microbatch) const {
    return needs_backward_weight(stage) && trains(microbatch);
  }
  [[nodiscard]] bool needs_backward_input(Stage stage, Microbatch microbatch) const {
    return needs_backward_input(stage) && trains(microbatch);
  }

  // What the stage keeps between F and the backward.
  [[nodiscard]] Keeping keeping_of(Stage stage) const {
    return keeping.empty() ? Keeping{} : keeping[static_cast<std::size_t>(stage)];
  }
  // Has this stage and microbatch a RECOMPUTE or RELOAD before its backward?
  [[nodiscard]] bool restores(Stage stage, Microbatch microbatch) const {
    return !keeping.empty() && keeping[static_cast<std::size_t>(stage)].kind != KeepingKind::all &&
           needs_backward_input(stage, microbatch);
  }

  // Is the stage, or anything that feeds it directly or not, trainable? O(S).
  [[nodiscard]] bool any_feeder_trains(Stage stage) const;

  // Duration of one slot: of its op, or of the fused pair. O(1) (pairs: one hash look-up).
  [[nodiscard]] Time duration(const Slot& slot) const;

  // How messages from one stage to another travel between ranks, and how large they are then.
  [[nodiscard]] DataType wire_type(Stage from, Stage to) const {
    return from < to ? compression.activations : compression.gradients;
  }
  [[nodiscard]] Bytes wire_size(Stage from, Stage to) const {
    return packed_size(wire_type(from, to), message[static_cast<std::size_t>(std::min(from, to))]);
  }

  // How long a message between neighbouring stages of one copy takes with the way to itself; 0
  // inside a rank.
  [[nodiscard]] Time hop(Stage from, Stage to, int replica) const;

  // Bytes allocated when this op begins and freed when it ends.
  [[nodiscard]] Bytes allocated(const Op& op) const;
  [[nodiscard]] Bytes freed(const Op& op) const;
};

}  // namespace counterflow
