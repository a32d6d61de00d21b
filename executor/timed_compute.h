#pragma once

#include <chrono>

#include "executor/compute.h"

namespace counterflow::exec {

// Computes nothing, for as long as the kernel is predicted to take: the timeline of a run on a
// machine that this one is not. Sleeps until the end of the op, less what the system is found to
// oversleep, and spins for what is left.
class TimedCompute final : public Compute {
 public:
  // Takes a few milliseconds to find out how long sleeping overshoots.
  TimedCompute();
  void run(const ComputeCall& call) override;

 private:
  std::chrono::nanoseconds overshoot_;
};

}  // namespace counterflow::exec
