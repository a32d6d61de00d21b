#include "executor/timed_compute.h"

#include <algorithm>
#include <array>
#include <thread>

namespace counterflow::exec {
namespace {

using Clock = std::chrono::steady_clock;

// The median of a few sleeps: one that was interrupted does not count.
std::chrono::nanoseconds measured_overshoot() {
  constexpr std::chrono::microseconds kSleep(200);
  std::array<std::chrono::nanoseconds, 9> overshoots{};
  for (auto& overshoot : overshoots) {
    const auto until = Clock::now() + kSleep;
    std::this_thread::sleep_until(until);
    overshoot = Clock::now() - until;
  }
  const auto middle = overshoots.begin() + overshoots.size() / 2;
  std::ranges::nth_element(overshoots, middle);
  // Where much else runs, spinning would only take its time.
  return std::clamp(*middle, std::chrono::nanoseconds(0), std::chrono::nanoseconds(kSleep));
}

}  // namespace

TimedCompute::TimedCompute() : overshoot_(measured_overshoot()) {}

void TimedCompute::run(const ComputeCall& call) {
  const auto begin = Clock::now();
  const auto until = begin + call.kernel->duration;
  if (until - overshoot_ > begin) std::this_thread::sleep_until(until - overshoot_);
  while (Clock::now() < until) {
  }
}

}  // namespace counterflow::exec
