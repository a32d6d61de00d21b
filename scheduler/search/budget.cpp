#include "scheduler/search/budget.h"

#include <algorithm>
#include <thread>

namespace counterflow {
namespace {

// An iteration over fewer ops takes less than anybody notices.
constexpr std::size_t kOpsToTime = 4'000;

}  // namespace

std::int64_t default_iterations(std::size_t ops) {
  constexpr std::int64_t kOps = 40'000'000;
  return std::clamp<std::int64_t>(kOps / static_cast<std::int64_t>(std::max<std::size_t>(ops, 1)),
                                  24, 200'000);
}

int starts_of(const SearchBudget& budget, std::size_t ops) {
  constexpr unsigned kMost = 8;
  constexpr std::size_t kOps = 100'000;  // past this each takes hundreds of megabytes
  if (budget.starts > 0) return std::min(budget.starts, kMaxStarts);
  if (!budget.time || ops > kOps) return 1;
  return static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, kMost));
}

BudgetMeter::BudgetMeter(const SearchBudget& budget, std::size_t ops, Clock::time_point begin)
    : time_(budget.time),
      enough_(budget.time ? budget.enough : nullptr),
      total_(budget.iterations > 0 ? budget.iterations : default_iterations(ops)),
      most_(budget.most),
      ops_(ops),
      begin_(begin) {
  if (most_) total_ = std::min(total_, *most_);
}

void BudgetMeter::spend() {
  ++spent_;
  if (!time_ || ops_ < kOpsToTime) return;
  const auto now = Clock::now();
  if (spent_ > 1) longest_ = std::max(longest_, now - last_);
  last_ = now;
}

void BudgetMeter::reserve(Clock::duration answer) {
  if (ops_ >= kOpsToTime) answer_ = std::max(answer_, answer);
}

double BudgetMeter::share() const {
  if (!time_) {
    return spent_ >= total_ ? 1 : static_cast<double>(spent_) / static_cast<double>(total_);
  }
  if (enough_ != nullptr && enough_->load(std::memory_order_relaxed)) return 1;
  const Time whole = std::max(*time_, Time{1});
  const auto passed = Clock::now() - begin_ + answer_;
  return std::chrono::duration<double>(passed +
                                       std::min<Clock::duration>(2 * longest_, whole / 10)) /
         std::chrono::duration<double>(whole);
}

std::int64_t BudgetMeter::affords(Time step) const {
  constexpr double kOp = 20e-9;
  const double whole = time_ ? std::chrono::duration<double>(*time_).count()
                             : kOp * static_cast<double>(ops_) * static_cast<double>(total_);
  const double left = whole * std::max(0.0, 1 - share());
  return static_cast<std::int64_t>(left / std::chrono::duration<double>(step).count());
}

}  // namespace counterflow
