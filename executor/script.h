#pragma once

#include <vector>

#include "executor/node.h"
#include "scheduler/graph/prerequisites.h"
#include "scheduler/ir/program.h"

namespace counterflow::exec {

// A step of a program on virtual streams from its first instruction to its last, as all steps go
// where nothing is drawn. What they read stands one behind the other.
struct Script {
  std::vector<Prerequisites::Index> order;
  std::vector<Node> nodes;  // of the order; the body of a run is a range of `accesses`
  std::vector<Access> accesses;
};

// The script of an order. O(instructions).
[[nodiscard]] Script script_of(const Program& program, const std::vector<Node>& nodes,
                               std::vector<Prerequisites::Index> order);

}  // namespace counterflow::exec
