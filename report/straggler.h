#pragma once

#include <optional>
#include <string>

#include "scheduler/ir/op.h"
#include "scheduler/ir/units.h"

namespace counterflow {

// A rank whose ops of a kind, or one op of a rank, is slower than its like in step after step, by a
// tenth at least and by what matters to a step.
struct Straggler {
  Rank rank = 0;
  std::string kind;      // "F", "F+B", "SEND_F"
  std::optional<Op> op;  // one op; none: all of the kind on that rank
  // Times as long as: of a rank, its peers' ops of that kind, or, if none has any, the prediction;
  // of an op, the others of its kind on its rank. What ops should take by the prediction is taken
  // out first, so stages may differ.
  double factor = 1;
  bool has_peers = true;
  int since = 0;  // the first step of those in which it was so
  Time cost{0};   // what it takes too long, in a step
};

}  // namespace counterflow
