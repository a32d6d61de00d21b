#pragma once

#include <string_view>

#include "scheduler/ir/op.h"

namespace counterflow {

// What a kind of op is called in pictures and traces: "forward", "input gradient", "send
// activation".
[[nodiscard]] std::string_view spoken(OpKind kind);

}  // namespace counterflow
