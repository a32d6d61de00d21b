#pragma once

#include <vector>

#include "scheduler/graph/matching.h"
#include "scheduler/graph/recordings.h"
#include "scheduler/ir/program.h"

namespace counterflow {

// What the instructions of a program refer to, looked up once for all rules. The program must
// outlive it.
struct References {
  // O(instructions).
  explicit References(const Program& program)
      : meets(program), recordings(program.ranks.begin(), program.ranks.end()) {}

  Matching meets;                      // the other end of each transfer
  std::vector<Recordings> recordings;  // [rank] who records what
};

}  // namespace counterflow
