#pragma once

#include "scheduler/graph/channels.h"
#include "scheduler/ir/op.h"

namespace counterflow {

// Does the op work on messages or on what F saves? Not UNSHARD and the like.
[[nodiscard]] constexpr bool uses_buffers(const Op& op) {
  return is_compute(op.kind);
}
// Does it add to the weight gradients of its stage?
[[nodiscard]] constexpr bool accumulates(const Op& op) {
  return op.kind == OpKind::backward || op.kind == OpKind::backward_weight;
}

// The messages an op uses, in the order its accesses document: read(id) for each activation its
// stage takes in and, of a backward, for each output gradient; then write(id) for each it makes.
// Moves to the host and back use none.
template <typename Read, typename Write>
void for_each_message(const Channels& channels, const Op& op, Read read, Write write) {
  if (op.kind == OpKind::offload || op.kind == OpKind::reload) return;
  Op of_kind = op;
  of_kind.kind = OpKind::forward;
  for (const Channels::Id id : channels.inputs(of_kind)) read(id);
  if (is_backward(op.kind)) {
    of_kind.kind = OpKind::backward_input;
    for (const Channels::Id id : channels.inputs(of_kind)) read(id);
  }
  for (const Channels::Id id : channels.outputs(op)) write(id);
}

}  // namespace counterflow
