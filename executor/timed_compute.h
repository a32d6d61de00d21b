#pragma once

#include "executor/compute.h"

namespace counterflow::exec {

// Computes nothing, for as long as the kernel is predicted to take: the timeline of a run on a
// machine that this one is not. It sleeps until the end of the op, so that a few cores can stand
// for many ranks.
class TimedCompute final : public Compute {
 public:
  void run(const ComputeCall& call) override;
};

}  // namespace counterflow::exec
