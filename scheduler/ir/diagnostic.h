#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/ir/op.h"

namespace counterflow {

// One fault of a schedule or program. A faulty schedule is data, not an exception: verification
// returns a list of these, and an empty list means there is nothing to object to.
struct Diagnostic {
  std::string rule;          // "complete", "order", "rank", "matching", "deadlock", "memory", ...
  std::optional<Rank> rank;  // where, if the fault has one place
  std::optional<std::int64_t> index;  // position in that rank's list, 0-based
  Op op;                              // the op concerned; kind none if there is none
  std::string message;                // what is wrong and what would be right
};

using Diagnostics = std::vector<Diagnostic>;

}  // namespace counterflow
