#include "scheduler/search/starts.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <future>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "scheduler/error.h"

namespace counterflow {
namespace {

// Is `a` better than `b`, by what the budget aims at?
bool is_better(const SearchResult& a, const SearchResult& b, SearchGoal goal) {
  if (goal == SearchGoal::span && a.span != b.span) return a.span < b.span;
  return a.makespan < b.makespan;
}

// What one start comes to: one may find no order where another does, or where another has proven
// its own optimal before.
using Attempt = std::variant<SearchResult, std::exception_ptr>;

Attempt attempt(const SearchOnce& search_once, const SearchBudget& budget) {
  try {
    return search_once(budget);
  } catch (const InfeasibleError&) {
    return std::current_exception();
  }
}

// The better of the two; every bound holds for both.
SearchResult merged(SearchResult a, SearchResult b, SearchGoal goal) {
  const SearchResult& tighter = b.lower_bound > a.lower_bound ? b : a;
  const Time bound = tighter.lower_bound;
  const std::string_view argument = tighter.bound_argument;
  const Time span_bound = std::max(a.span_bound, b.span_bound);
  const std::int64_t iterations = a.iterations + b.iterations;
  const int searches = a.searches + b.searches;
  SearchResult best = is_better(b, a, goal) ? std::move(b) : std::move(a);
  best.lower_bound = bound;
  best.bound_argument = argument;
  best.span_bound = span_bound;
  best.iterations = iterations;
  best.searches = searches;
  return best;
}

}  // namespace

SearchResult search_from(int starts, const SearchBudget& budget, const SearchOnce& search_once) {
  std::atomic<bool> enough{false};
  const auto one = [&](int start) {
    SearchBudget own = budget;
    own.seed += static_cast<std::uint64_t>(start) * 0x9e3779b97f4a7c15ULL;
    own.enough = &enough;
    if (start > 0) own.progress = {};
    Attempt found = attempt(search_once, own);
    const auto* result = std::get_if<SearchResult>(&found);
    if (result != nullptr && result->is_optimal() && budget.goal == SearchGoal::makespan) {
      enough = true;
    }
    return found;
  };
  std::vector<std::future<Attempt>> others;
  for (int start = 1; start < starts; ++start) {
    others.push_back(std::async(std::launch::async, one, start));
  }
  Attempt best = one(0);
  for (std::future<Attempt>& other : others) {
    Attempt next = other.get();
    if (std::holds_alternative<std::exception_ptr>(next)) continue;
    if (std::holds_alternative<std::exception_ptr>(best)) {
      best = std::move(next);
    } else {
      best = merged(std::get<SearchResult>(std::move(best)),
                    std::get<SearchResult>(std::move(next)), budget.goal);
    }
  }
  if (const auto* error = std::get_if<std::exception_ptr>(&best)) std::rethrow_exception(*error);
  return std::get<SearchResult>(std::move(best));
}

}  // namespace counterflow
