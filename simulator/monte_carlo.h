#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "scheduler/ir/schedule.h"
#include "scheduler/ir/trials.h"
#include "scheduler/problem/problem.h"
#include "scheduler/problem/scenario.h"
#include "simulator/noise.h"

namespace counterflow {

// A program wired once and run many times, each time with other draws of its jitter. What a trial
// draws depends on seed and trial number alone. Program, links and execution model must outlive it.
class TrialRunner {
 public:
  TrialRunner(const Program& program, const Links& links, const ExecutionModel& execution,
              const Jitter& jitter, std::uint64_t seed, const Scenario& scenario = {});
  ~TrialRunner();
  TrialRunner(TrialRunner&&) noexcept;
  TrialRunner& operator=(TrialRunner&&) = delete;

  using Perturbation = sim::Noise::Perturbation;

  // The makespan of trial 0, 1, ...: last end minus first start of F, B, I and W; -1ns if it does
  // not come to its end. Costs no more than a simulation; for one thread.
  [[nodiscard]] Time makespan(std::uint64_t trial, const Perturbation& perturbation = {});
  // The makespans of trials [first, first + count), by so many threads; the same for any number.
  [[nodiscard]] std::vector<Time> makespans(std::uint64_t first, int count, int threads,
                                            const Perturbation& perturbation = {});
  // Pairs of ranks with messages that take time, ascending.
  [[nodiscard]] std::vector<std::pair<Rank, Rank>> pairs() const;

 private:
  struct Shared;
  struct Worker;
  [[nodiscard]] Worker& worker(std::size_t number);

  std::unique_ptr<Shared> shared_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

struct TrialOptions {
  int trials = 1000;
  std::uint64_t seed = 0;
  int threads = 1;
  bool sensitivity = true;
};

// Makespans and sensitivities of a program under jitter. Sensitivity takes about as many runs again
// as there are trials: as many of the first draws as that allows, 1 at least. Throws
// InfeasibleError if a trial does not come to its end. The same result for any number of threads.
[[nodiscard]] Trials run_trials(const Program& program, const Links& links,
                                const ExecutionModel& execution, const Jitter& jitter,
                                const TrialOptions& options, const Scenario& scenario = {});

// What of the makespans under disturbances counts, and over which draws.
struct DisturbedMakespan {
  std::optional<double> quantile;  // nearest rank; none: the mean
  int trials = 1;
  std::uint64_t seed = 0;
};

// What a search for an order that stands jitter and a scenario minimises: the mean or a quantile of
// its makespans, over the same draws for every order. The order is compiled, then run; one that
// does not come to its end gives Time::max(). The problem must outlive it; the object may be
// copied, and called from several threads.
[[nodiscard]] std::function<Time(const Schedule&)> makespan_under(const Problem& problem,
                                                                  const ExecutionModel& execution,
                                                                  const Jitter& jitter,
                                                                  const Scenario& scenario,
                                                                  const DisturbedMakespan& what);

// The mean, rounded. There must be one.
[[nodiscard]] Time mean(const std::vector<Time>& values);
// The smallest value that at least the share q of all do not exceed. There must be one.
[[nodiscard]] Time quantile(std::vector<Time> values, double q);

}  // namespace counterflow
