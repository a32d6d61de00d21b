#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "scheduler/ir/op.h"
#include "scheduler/ir/units.h"

namespace counterflow {

struct Problem;
struct Schedule;

// What a stage does with its activations between F and the backward: keeps them all; makes them
// again by RECOMPUTE before the backward; or moves them to the host by OFFLOAD after F and back by
// RELOAD. Each of these ops occupies its rank, so the time of a copy is what compute does not hide.
enum class KeepingKind : std::uint8_t { all, recompute, offload };

// "all", "recompute", "offload".
[[nodiscard]] std::string_view name(KeepingKind kind);

// One way for one stage.
struct Keeping {
  KeepingKind kind = KeepingKind::all;
  Time store{0};    // of OFFLOAD
  Time restore{0};  // of RECOMPUTE or RELOAD
  Bytes kept;       // what stays of the activation in between

  // The op before the backward, and the one after F; none where the stage has no such op.
  [[nodiscard]] OpKind restore_kind() const {
    if (kind == KeepingKind::all) return OpKind::none;
    return kind == KeepingKind::recompute ? OpKind::recompute : OpKind::reload;
  }
  [[nodiscard]] OpKind store_kind() const {
    return kind == KeepingKind::offload ? OpKind::offload : OpKind::none;
  }
};

// The problem with each stage keeping what `keeping` says [stage]; its costs follow. O(size of the
// problem).
[[nodiscard]] Problem with_keeping(Problem problem, std::vector<Keeping> keeping);

// The problem as the ops of a schedule decide it: a stage that may choose does what its ops in the
// schedule say, and keeps everything where it has none. O(ops).
[[nodiscard]] Problem with_keeping_of(Problem problem, const Schedule& schedule);

// The op with what its stage's way of keeping puts before it (RECOMPUTE, RELOAD) or after it
// (OFFLOAD), in order.
[[nodiscard]] std::vector<Op> with_restores(const Problem& problem, const Op& op);

// The schedule with the ops that the stages' ways of keeping need: OFFLOAD right after F, RECOMPUTE
// and RELOAD right before the backward, or before the pair it is fused in. Any it has are replaced.
// O(ops).
[[nodiscard]] Schedule with_restores(const Problem& problem, Schedule schedule);

// The schedule without them. O(ops).
[[nodiscard]] Schedule without_restores(Schedule schedule);

}  // namespace counterflow
