#pragma once

#include <vector>

#include "scheduler/ir/program.h"
#include "scheduler/ir/timeline.h"

namespace counterflow {

// Steps that follow each other without a barrier, as one program (in_steps).
struct ConsecutiveSteps {
  int steps = 0;
  Time makespan{0};                // from the first op of the first step to the last op of the last
  Time step{0};                    // what one step more adds
  std::vector<Bytes> peak_memory;  // [rank] over all of them
};

// Of a timeline of such a program, of two steps at least. A step ends with the last of its F, B, I
// and W on any rank; what one adds is the mean over the second half, in which the first step's way
// in is felt no more. O(instructions).
[[nodiscard]] ConsecutiveSteps measure_steps(const Program& program, const Timeline& timeline,
                                             int steps);

}  // namespace counterflow
