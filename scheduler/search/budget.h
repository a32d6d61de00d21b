#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "scheduler/ir/units.h"

namespace counterflow {

// What a search has found so far.
struct SearchProgress {
  double share = 0;  // of the budget, 0 to 1
  Time makespan{0};
  Time lower_bound{0};
};

// What to keep small: the last end of all, or the longest span of a rank (its last end minus its
// first begin), which counts where ranks need not begin together, step after step.
enum class SearchGoal : std::uint8_t { makespan, span };

// How long to search, and for what. Iterations (schedules tried) make a result reproducible: the
// same problem, seeds and budget give the same schedule. Time does not.
struct SearchBudget {
  std::int64_t iterations = 0;  // 0: as many as suit the size; not used where `time` is given
  // Where nothing is found within the iterations they go on until something is, but no further than
  // this: then the search fails. 0: nothing is tried beside the seeds.
  std::optional<std::int64_t> most;
  std::optional<Time> time;
  std::uint64_t seed = 0;
  // Searches with random numbers of their own, each with all of the budget and a thread of its own;
  // the best of them counts. 0: with a budget in time one a core, where that suits the size, with
  // one in iterations one. Without an objective only.
  int starts = 0;
  SearchGoal goal = SearchGoal::makespan;
  std::function<void(const SearchProgress&)> progress;  // now and then; may be empty
  // Once it is true, a budget in time is spent. May be null.
  const std::atomic<bool>* enough = nullptr;
};
inline constexpr int kMaxStarts = 64;

// SearchBudget::starts, for a problem of so many ops.
[[nodiscard]] int starts_of(const SearchBudget& budget, std::size_t ops);

// The iterations that suit a problem of so many ops: some seconds at most for common sizes.
[[nodiscard]] std::int64_t default_iterations(std::size_t ops);

// A budget being spent.
class BudgetMeter {
 public:
  using Clock = std::chrono::steady_clock;

  // `begin`: since when a budget in time is being spent.
  BudgetMeter(const SearchBudget& budget, std::size_t ops, Clock::time_point begin = Clock::now());

  void spend();  // an iteration
  // The answer will take about so long, once nothing more is tried.
  void reserve(Clock::duration answer);
  // The share that is spent, 1 when nothing is left beside what is reserved, or not enough for two
  // more iterations as long as the longest.
  [[nodiscard]] double share() const;
  [[nodiscard]] bool is_spent() const { return share() >= 1; }
  // May nothing be tried even where nothing was found?
  [[nodiscard]] bool is_at_most() const { return most_ && spent_ >= *most_; }
  // Does a look at the share take a look at the clock?
  [[nodiscard]] bool is_timed() const { return time_.has_value(); }
  [[nodiscard]] std::int64_t iterations() const { return spent_; }
  // How many steps of about this length fit into what is left; an iteration counts as 20 ns an op.
  [[nodiscard]] std::int64_t affords(Time step) const;

 private:
  std::optional<Time> time_;
  const std::atomic<bool>* enough_;
  std::int64_t total_;
  std::optional<std::int64_t> most_;
  std::size_t ops_;
  std::int64_t spent_ = 0;
  Clock::time_point begin_;
  Clock::time_point last_;  // spent
  Clock::duration longest_{0};
  Clock::duration answer_{0};
};

}  // namespace counterflow
