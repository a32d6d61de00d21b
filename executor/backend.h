#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "executor/compute.h"
#include "scheduler/ir/execution_model.h"
#include "scheduler/ir/program.h"
#include "scheduler/ir/timeline.h"

namespace counterflow::exec {

// Why a run stopped: the first instruction that could not go on, and what it was waiting for.
struct Failure {
  Rank rank = 0;
  std::uint32_t instruction = 0;
  int step = 0;
  std::string reason;  // "waits for F3 of stage 2 from rank 1, which has not posted its send"
  // The rank at which the chain of those that wait ends; none where it is a cycle.
  std::optional<Rank> culprit{};
};

struct RunSettings {
  int steps = 1;
  std::uint64_t seed = 0;  // of the interleaving, where the backend chooses one; 0: not at random
  ExecutionModel execution = ExecutionModel::nccl();  // the rules transfers follow
  std::function<void(int)> step_done{};  // called with the number of steps completed; may be empty
  // Takes what was measured of each step that completed, in order; empty: RunResult keeps it. Over
  // gloo it is always kept, for it is gathered after the last step.
  std::function<void(Timeline)> measured{};
};

// How far a rank was in a step when the run stopped.
struct RankProgress {
  int step = 0;
  std::int64_t start_ns = 0;           // when the step began, since 1970
  Time stopped{0};                     // from then, as all times here
  std::vector<Interval> instructions;  // [instruction]; kNotYet: has not begun, has not ended
};
inline constexpr Time kNotYet{-1};

struct RunResult {
  std::vector<Timeline> steps;  // measured, one a completed step; times from the step's begin
  std::optional<Failure> failure;
  // With a failure, [rank] as far as known here: a rank that is gone says nothing.
  std::vector<std::optional<RankProgress>> stopped{};
};

// Gives a step that completed to whoever takes it, or keeps it.
inline void settle(const RunSettings& settings, Timeline step, RunResult& result) {
  if (settings.measured) {
    settings.measured(std::move(step));
  } else {
    result.steps.push_back(std::move(step));
  }
}

// A machine that executes Programs. Runs every step to its end, or to the first failure; never
// hangs. The program must have been verified.
class Backend {
 public:
  virtual ~Backend() = default;
  [[nodiscard]] virtual RunResult run(const Program& program, Compute& compute,
                                      const RunSettings& settings) = 0;
};

}  // namespace counterflow::exec
