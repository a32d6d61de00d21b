#pragma once

#include <vector>

#include "report/even_sample.h"
#include "report/step_statistics.h"
#include "scheduler/ir/program.h"
#include "scheduler/ir/timeline.h"

namespace counterflow {

// The steps of a run as they complete: the makespan of each, statistics of all, and the timelines
// of an even sample, so that memory does not grow with the steps but for eight bytes each.
class RunSteps {
 public:
  static constexpr std::size_t kKept = 32;

  // The program must outlive it.
  RunSteps(const Program& program, const Timeline& predicted)
      : program_(program), statistics_(program, predicted) {}

  void add(Timeline step);

  [[nodiscard]] const std::vector<Time>& makespans() const { return makespans_; }
  [[nodiscard]] RunStatistics statistics() const { return statistics_.result(); }

  struct Shown {
    int step = 0;
    Timeline timeline;
  };
  // Of the timelines that were kept, up to 32 steps all, the one nearest to the median makespan,
  // the first of equal ones. There must have been a step.
  [[nodiscard]] Shown take_shown();

 private:
  const Program& program_;
  StepStatistics statistics_;
  std::vector<Time> makespans_;
  EvenSample<Timeline> kept_{kKept};
};

}  // namespace counterflow
