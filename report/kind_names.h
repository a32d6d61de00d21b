#pragma once

#include <string>
#include <string_view>

#include "scheduler/ir/op.h"

namespace counterflow {

// What a kind of op is called in pictures and traces: "forward", "input gradient", "send
// activation".
[[nodiscard]] std::string_view spoken(OpKind kind);
// What tables call instructions of a kind: "F", "SEND_F", and "F+B" for fused pairs.
[[nodiscard]] std::string kind_token(OpKind kind, OpKind paired);

}  // namespace counterflow
