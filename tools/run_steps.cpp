#include "tools/run_steps.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>

#include "report/report.h"

namespace counterflow {

void RunSteps::add(Timeline step) {
  makespans_.push_back(measure(program_, step).makespan);
  statistics_.add(step, makespans_.back());
  kept_.add(std::move(step));
}

RunSteps::Shown RunSteps::take_shown() {
  std::vector<Time> sorted = makespans_;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>((sorted.size() - 1) / 2);
  std::ranges::nth_element(sorted, middle);
  std::size_t best = 0;
  const auto distance = [&](std::size_t i) {
    return std::chrono::abs(makespans_[kept_.index(i)] - *middle);
  };
  for (std::size_t i = 1; i < kept_.values().size(); ++i) {
    if (distance(i) < distance(best)) best = i;
  }
  return {static_cast<int>(kept_.index(best)), std::move(kept_.values()[best])};
}

}  // namespace counterflow
