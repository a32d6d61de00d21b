#include "scheduler/search/budget.h"

#include <algorithm>

namespace counterflow {

std::int64_t default_iterations(std::size_t ops) {
  constexpr std::int64_t kOps = 20'000'000;
  return std::clamp<std::int64_t>(kOps / static_cast<std::int64_t>(std::max<std::size_t>(ops, 1)),
                                  24, 40'000);
}

BudgetMeter::BudgetMeter(const SearchBudget& budget, std::size_t ops)
    : time_(budget.time),
      total_(budget.iterations > 0 ? budget.iterations : default_iterations(ops)),
      begin_(time_ ? Clock::now() : Clock::time_point{}) {}

double BudgetMeter::share() const {
  if (!time_) return static_cast<double>(spent_) / static_cast<double>(total_);
  const auto passed = std::chrono::duration<double>(Clock::now() - begin_);
  return passed / std::chrono::duration<double>(std::max(*time_, Time{1}));
}

}  // namespace counterflow
