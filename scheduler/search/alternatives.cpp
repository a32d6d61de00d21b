#include "scheduler/search/alternatives.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "scheduler/error.h"
#include "scheduler/graph/evaluate.h"
#include "scheduler/ir/schedule_file.h"

namespace counterflow {
namespace {

// Searches meet the same seeds, and often the same orders: each is judged once.
class Judged {
 public:
  explicit Judged(const SearchObjective& objective) : objective_(objective) {}

  Time operator()(const Schedule& schedule) {
    std::string order = to_csv(schedule);
    {
      const std::lock_guard lock(mutex_);
      if (const auto known = known_.find(order); known != known_.end()) return known->second;
    }
    const Time value = objective_(schedule);
    const std::lock_guard lock(mutex_);
    known_.emplace(std::move(order), value);
    return value;
  }

 private:
  const SearchObjective& objective_;
  std::mutex mutex_;
  std::unordered_map<std::string, Time> known_;
};

struct Outcome {
  std::optional<SearchResult> result;  // none: it threw, or there was no time for it
  std::exception_ptr error;
};

// `work(i)` for each i below `count`, by so many threads; what it throws is kept.
template <typename Work>
std::vector<Outcome> on_threads(std::size_t count, std::size_t threads, const Work& work) {
  std::vector<Outcome> outcomes(count);
  std::atomic<std::size_t> next{0};
  const auto take = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        outcomes[i].result = work(i);
      } catch (...) {
        outcomes[i].error = std::current_exception();
      }
    }
  };
  std::vector<std::jthread> others;
  for (std::size_t i = 1; i < threads; ++i) others.emplace_back(take);
  take();
  others.clear();  // joins
  return outcomes;
}

// An alternative on which nothing was found takes no part.
void rethrow_fault(const std::exception_ptr& error) {
  try {
    if (error) std::rethrow_exception(error);
  } catch (const InfeasibleError&) {
    return;
  }
}

}  // namespace

SearchResult search_alternatives(const Problem& problem, std::span<const Alternative> alternatives,
                                 std::span<const Schedule> seeds, const SearchBudget& budget,
                                 const SearchObjective& objective, int threads) {
  const std::size_t count = 1 + alternatives.size();
  const std::size_t crew = std::clamp<std::size_t>(static_cast<std::size_t>(threads), 1, count);
  SearchBudget share = budget;
  if (share.time) *share.time /= static_cast<std::int64_t>((count + crew - 1) / crew);
  SearchBudget silent = share;
  silent.progress = nullptr;
  Judged judged(objective);
  const SearchObjective judge = [&judged](const Schedule& order) { return judged(order); };
  const auto begin = std::chrono::steady_clock::now();
  using MaybeFound = std::optional<SearchResult>;
  std::vector<Outcome> outcomes = on_threads(count, crew, [&](std::size_t i) -> MaybeFound {
    if (i == 0) return search(problem, seeds, share, judge);
    // Judging a single order may take longer than the share of a search.
    if (budget.time && std::chrono::steady_clock::now() - begin >= *budget.time) return {};
    return search(alternatives[i - 1].problem, seeds, silent, judge);
  });
  if (outcomes[0].error) std::rethrow_exception(outcomes[0].error);
  SearchResult best = std::move(*outcomes[0].result);
  Evaluator evaluator(problem);
  for (std::size_t i = 1; i < count; ++i) {
    rethrow_fault(outcomes[i].error);
    if (!outcomes[i].result) continue;
    SearchResult& other = *outcomes[i].result;
    best.iterations += other.iterations;
    best.searches += other.searches;
    const Time makespan = evaluator.makespan(other.schedule);
    if (std::pair(other.objective, makespan) >= std::pair(best.objective, best.makespan)) continue;
    best.objective = other.objective;
    best.makespan = makespan;
    best.schedule = std::move(other.schedule);
    best.found_by = other.found_by + " on " + alternatives[i - 1].what;
  }
  return best;
}

}  // namespace counterflow
