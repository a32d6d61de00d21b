#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scheduler/ir/units.h"

namespace counterflow {

// How the second half of a run's steps differs from the first.
struct Drift {
  Time first{0};         // median makespan of the first half
  Time last{0};          // and of the second
  double change = 0;     // last / first - 1
  bool is_sure = false;  // 3 % and more, and chance does so once in a hundred times at most
  // The kind of op whose time a rank changed most in the same direction, if by a quarter of the
  // makespan's change; else "": ranks wait longer, or less.
  std::string kind{};
  Time of_kind{0};
};

// What the ops of a kind took in each step, in ns a rank on average.
struct KindSeries {
  std::string kind;
  std::vector<double> times;  // [step]
};

// Of fewer than ten steps none. O(steps * (steps + kinds)).
[[nodiscard]] std::optional<Drift> drift_of(const std::vector<double>& makespans,
                                            const std::vector<KindSeries>& kinds);

}  // namespace counterflow
