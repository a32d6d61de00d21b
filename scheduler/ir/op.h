#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "scheduler/ir/units.h"

namespace counterflow {

// What a rank does for one stage. The letters are PyTorch's (`_ComputationType`); the long names of
// the rest are ours where PyTorch has none.
enum class OpKind : std::uint8_t {
  none,
  // Compute, one microbatch.
  forward,          // F
  backward,         // B: the full backward, I then W in one op
  backward_input,   // I: input gradient (dgrad)
  backward_weight,  // W: weight gradient (wgrad)
  recompute,        // RECOMPUTE: activations made again before a backward
  offload,          // OFFLOAD: activations to host memory
  reload,           // RELOAD: and back
  // Transfers, as a schedule file with communication names them: by the op at this end.
  send_forward,      // SEND_F: the output of this stage's F leaves
  receive_forward,   // RECV_F: the input of this stage's F arrives
  send_backward,     // SEND_B: the input gradient of this stage leaves
  receive_backward,  // RECV_B: the output gradient of this stage arrives
  // Whole-stage actions; no microbatch.
  unshard,
  reshard,
  reduce_gradients,
  gradient_norm,   // NORM: a rank's share of the norm of all gradients, named by its first stage
  optimizer_step,  // STEP
  validate_step,   // VALIDATE: a STEP that did not wait for the norm, amended by it where need be
};
inline constexpr OpKind kLastOpKind = OpKind::validate_step;
inline constexpr std::size_t kOpKinds = static_cast<std::size_t>(kLastOpKind) + 1;

// One unit of work: kind, stage, replica (which copy of the stage: of a bidirectional placement the
// second is 1; of pipelines side by side each has its own) and microbatch. Eight bytes, so that a
// schedule of millions stays small.
struct Op {
  OpKind kind = OpKind::none;
  std::uint8_t replica = 0;
  std::uint16_t stage = 0;
  Microbatch microbatch = 0;

  friend constexpr auto operator<=>(const Op&, const Op&) = default;
};
static_assert(sizeof(Op) == 8);

// Limits that follow from the field widths above; the config reader enforces them.
inline constexpr std::int64_t kMaxStages = 65535;
inline constexpr std::int64_t kMaxMicrobatches = 1'000'000;
inline constexpr int kMaxReplicas = 256;

[[nodiscard]] constexpr bool is_compute(OpKind kind) {
  return kind >= OpKind::forward && kind <= OpKind::reload;
}
[[nodiscard]] constexpr bool is_transfer(OpKind kind) {
  return kind >= OpKind::send_forward && kind <= OpKind::receive_backward;
}
[[nodiscard]] constexpr bool is_send(OpKind kind) {
  return kind == OpKind::send_forward || kind == OpKind::send_backward;
}
// Does it bring activations back before a backward, or move them out after F?
[[nodiscard]] constexpr bool restores_or_stores(OpKind kind) {
  return kind >= OpKind::recompute && kind <= OpKind::reload;
}
// Does this op compute (part of) a gradient?
[[nodiscard]] constexpr bool is_backward(OpKind kind) {
  return kind == OpKind::backward || kind == OpKind::backward_input ||
         kind == OpKind::backward_weight;
}
// Does the input gradient of the stage leave when this op ends?
[[nodiscard]] constexpr bool makes_input_gradient(OpKind kind) {
  return kind == OpKind::backward || kind == OpKind::backward_input;
}
[[nodiscard]] constexpr bool has_microbatch(OpKind kind) {
  return kind < OpKind::unshard;
}

// What stands before the stage of an op: "" for replica 0, "~" for 1, "2~" and so on for others.
[[nodiscard]] std::string replica_prefix(int replica);

// The token of a kind in schedule files: "F", "SEND_F", "UNSHARD"; "" for none.
[[nodiscard]] std::string_view token(OpKind kind);

}  // namespace counterflow
