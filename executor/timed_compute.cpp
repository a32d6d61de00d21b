#include "executor/timed_compute.h"

#include <sys/prctl.h>

#include <chrono>
#include <thread>

namespace counterflow::exec {

void TimedCompute::run(const ComputeCall& call) {
  const auto until = std::chrono::steady_clock::now() + call.kernel->duration;
  // Else Linux may let this thread sleep for 50 us longer, to wake it up together with others.
  prctl(PR_SET_TIMERSLACK, 1UL);
  std::this_thread::sleep_until(until);
}

}  // namespace counterflow::exec
