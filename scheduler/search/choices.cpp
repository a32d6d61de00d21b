#include "scheduler/search/choices.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/bounds/span.h"
#include "scheduler/error.h"
#include "scheduler/graph/evaluate.h"
#include "scheduler/search/choice.h"
#include "scheduler/search/least_memory.h"
#include "scheduler/search/model.h"
#include "scheduler/search/random.h"
#include "scheduler/verify/verify.h"

namespace counterflow {
namespace {

bool same_kinds(const Problem& one, const Problem& other) {
  for (Stage s = 0; s < one.stages(); ++s) {
    if (one.keeping_of(s).kind != other.keeping_of(s).kind) return false;
  }
  return true;
}

// The longest span of a rank: its last end minus its first begin.
Time longest_span(const Problem& problem, const Schedule& schedule) {
  const Evaluation evaluation = Evaluator(problem).evaluate(schedule);
  Time longest{0};
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    const auto& order = schedule.ranks[rank];
    if (order.empty()) continue;
    const auto& begins = evaluation.begins[rank];
    longest = std::max(longest, begins.back() + problem.duration(order.back()) - begins.front());
  }
  return longest;
}

// What whole searches spend of a budget.
class Account {
 public:
  explicit Account(const SearchBudget& budget) : time_(budget.time), total_(budget.iterations) {}

  void spend(std::int64_t iterations = 1) { spent_ += iterations; }
  [[nodiscard]] std::int64_t left() const { return std::max<std::int64_t>(0, total_ - spent_); }
  [[nodiscard]] double share() const {
    if (!time_) return static_cast<double>(spent_) / static_cast<double>(total_);
    return std::chrono::duration<double>(Clock::now() - begin_) /
           std::chrono::duration<double>(std::max(*time_, Time{1}));
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::optional<Time> time_;
  std::int64_t total_;
  std::int64_t spent_ = 0;
  Clock::time_point begin_ = Clock::now();
};

class ChoiceSearch {
 public:
  ChoiceSearch(const Problem& problem, std::span<const Schedule> seeds, const SearchBudget& budget)
      : problem_(problem), budget_(budget), meter_(whole(problem, budget)), seeds_(seeds) {
    for (const Schedule& seed : seeds) {
      const Problem its = with_keeping_of(problem, seed);
      Choice choice(static_cast<std::size_t>(problem.stages()), 0);
      for (std::size_t s = 0; s < choice.size(); ++s) {
        const KeepingKind kind = its.keeping_of(static_cast<Stage>(s)).kind;
        for (std::size_t k = 0; k < options_of(problem, s); ++k) {
          if (problem.keeping_options[s][k].kind == kind) {
            choice[s] = static_cast<std::uint8_t>(k + 1);
          }
        }
      }
      if (std::ranges::find(seeded_, choice) == seeded_.end()) seeded_.push_back(std::move(choice));
    }
  }

  ChosenSearch run() {
    const Choice none(static_cast<std::size_t>(problem_.stages()), 0);
    const Choice least = least_choice(problem_);
    if (fits(chosen(problem_, none))) {
      attempt(none, slice(kBaseShare, true));
    } else {
      try_least(least);
    }
    bound_ = lower_bound_of_choices(problem_, BoundEffort::quick);
    // However little is left of the budget: never worse than a seed.
    for (const Choice& choice : seeded_) {
      if (!is_done()) probe(choice);
    }
    const std::size_t count = count_choices(problem_, kFewChoices);
    if (count <= kFewChoices) {
      probe_all((kProbesEnd - kBaseShare) / static_cast<double>(count));
    } else {
      if (may_probe()) probe_ranks();
      if (!is_done()) probe_stages();
    }
    if (has_budget()) attempt(best_, slice(1 - meter_.share(), true));
    // It may be known through and through before the budget is spent.
    if (count <= kFewChoices) {
      search_others(count);
    } else {
      probe_neighbours();
    }
    ChosenSearch found{chosen(problem_, best_), std::move(*result_)};
    found.result.lower_bound = std::min(found.result.makespan, bound_.value);
    found.result.bound_argument = bound_.argument;
    found.result.iterations = tries_;
    found.result.searches = searches_;
    if (is_for_span()) {
      found.result.span_bound = std::min(found.result.span, span_bound(relaxed(problem_)));
    }
    return found;
  }

 private:
  static constexpr double kBaseShare = 0.5;
  static constexpr double kProbeShare = 1.0 / 128;
  static constexpr double kProbesEnd = 0.75;
  // A probe of fewer tries whose seeds do not fit may take so many to find an order.
  static constexpr std::int64_t kFirstTries = 32;

  static std::size_t ops_of(const Problem& problem) {
    return 3 * static_cast<std::size_t>(problem.stages()) *
           static_cast<std::size_t>(problem.microbatches);
  }
  static SearchBudget whole(const Problem& problem, SearchBudget budget) {
    if (budget.iterations == 0) budget.iterations = default_iterations(ops_of(problem));
    return budget;
  }

  [[nodiscard]] bool is_for_span() const { return budget_.goal == SearchGoal::span; }
  [[nodiscard]] bool is_done() const { return !is_for_span() && result_->makespan <= bound_.value; }
  [[nodiscard]] bool has_budget() const { return !is_done() && meter_.share() < 1; }
  [[nodiscard]] bool may_probe() const { return !is_done() && meter_.share() < kProbesEnd; }

  [[nodiscard]] SearchBudget slice(double share, bool shown) const {
    SearchBudget part = whole(problem_, budget_);
    const auto of = [share](std::int64_t all) {
      return std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(all) * share));
    };
    part.iterations = of(part.iterations);
    if (part.time) part.time = Time{of(part.time->count())};
    part.progress = nullptr;
    if (shown && budget_.progress) {
      part.progress = [this, share, from = meter_.share()](SearchProgress now) {
        now.share = from + share * now.share;
        now.lower_bound = std::min(now.lower_bound, bound_.value);
        budget_.progress(now);
      };
    }
    return part;
  }

  // Of what is left of a budget in iterations, which may be nothing: then only seeds are tried.
  [[nodiscard]] SearchBudget probe_slice(double share) const {
    SearchBudget part = slice(share, false);
    if (part.time) return part;
    part.iterations = std::clamp<std::int64_t>(meter_.left(), 1, part.iterations);
    part.most = std::min(meter_.left(), std::max(part.iterations, kFirstTries));
    return part;
  }

  // How good a result is for the goal; of equal ones fewer moves are better.
  using Merit = std::pair<Time, std::ptrdiff_t>;
  [[nodiscard]] Merit merit_of(const Problem& problem, const SearchResult& result,
                               const Choice& choice) const {
    return {is_for_span() ? longest_span(problem, result.schedule) : result.makespan,
            std::ssize(choice) - std::ranges::count(choice, std::uint8_t{0})};
  }

  // Searches under a choice; keeps the best. Is it better than what was there?
  bool attempt(const Choice& choice, const SearchBudget& part) {
    const Problem problem = chosen(problem_, choice);
    std::vector<Schedule> seeds(seeds_.begin(), seeds_.end());
    if (result_) {
      seeds.push_back(result_->schedule);
      seeds.back().name = result_->found_by;
    }
    SearchResult result = search(problem, seeds_for(problem, seeds), part);
    meter_.spend((result.iterations + result.searches - 1) / result.searches);
    tries_ += result.iterations;
    searches_ = std::max(searches_, result.searches);
    if (result_ && result.found_by == "seed " + result_->found_by) {
      result.found_by = result_->found_by;  // the order before, under another choice perhaps
    }
    const Merit merit = merit_of(problem, result, choice);
    if (result_ && merit >= merit_) return false;
    merit_ = merit;
    best_ = choice;
    result_ = std::move(result);
    return true;
  }

  void try_least(const Choice& least) {
    try {
      attempt(least, slice(kBaseShare, true));
    } catch (const InfeasibleError& error) {
      throw InfeasibleError(std::string("with every stage keeping the least it can, ") +
                            error.what());
    }
  }

  // A short search of a choice that is new.
  bool probe(const Choice& choice, double share = kProbeShare) {
    if (choice == best_ || std::ranges::find(tried_, choice) != tried_.end()) return false;
    tried_.push_back(choice);
    return search_under(choice, share);
  }

  // A search, where it can be of use. One that finds nothing is no answer.
  bool search_under(const Choice& choice, double share) {
    const Problem problem = chosen(problem_, choice);
    const bool hopeless = !is_for_span() && lower_bound(problem) >= result_->makespan;
    if (hopeless || !fits(problem)) {
      if (meter_.share() < 1) meter_.spend();
      return false;
    }
    const SearchBudget part = probe_slice(share);
    try {
      return attempt(choice, part);
    } catch (const InfeasibleError&) {
      meter_.spend(part.most.value_or(1));
      tries_ += part.most.value_or(1);
      return false;
    }
  }

  void probe_all(double share) {
    Choice choice(best_.size(), 0);
    do {
      if (may_probe()) probe(choice, share);
    } while (next_choice(problem_, choice));
  }

  // All but the best, each with its part of what is left.
  void search_others(std::size_t left) {
    Choice choice(best_.size(), 0);
    do {
      if (!has_budget()) return;
      if (choice != best_) {
        search_under(choice, (1 - meter_.share()) / static_cast<double>(left));
      }
      --left;
    } while (next_choice(problem_, choice));
  }

  // Choices that differ from the best in up to three stages, until none of them is new.
  void probe_neighbours() {
    constexpr int kMisses = 100;
    std::vector<std::size_t> stages;
    for (std::size_t s = 0; s < best_.size(); ++s) {
      if (options_of(problem_, s) > 0) stages.push_back(s);
    }
    SearchRandom random(budget_.seed);
    for (int misses = 0; misses < kMisses && has_budget();) {
      Choice choice = best_;
      for (std::uint32_t changes = 1 + random.below(3); changes > 0; --changes) {
        const std::size_t s = stages[random.below(static_cast<std::uint32_t>(stages.size()))];
        choice[s] = static_cast<std::uint8_t>(
            random.below(static_cast<std::uint32_t>(options_of(problem_, s) + 1)));
      }
      const std::size_t tried = tried_.size();
      probe(choice);
      misses = tried_.size() > tried ? 0 : misses + 1;
    }
  }

  // One way on all stages of the ranks up to one, which hold most in most schedules, and on all.
  void probe_ranks() {
    constexpr int kSteps = 8;
    const int ranks = problem_.ranks();
    for (std::uint8_t way = 1; way <= 2; ++way) {
      for (int step = 1; step <= std::min(kSteps, ranks); ++step) {
        const Rank end = step * ranks / std::min(kSteps, ranks);
        Choice choice(best_.size(), 0);
        for (int replica = 0; replica < problem_.placement.replicas(); ++replica) {
          for (std::size_t s = 0; s < choice.size(); ++s) {
            const Rank rank = problem_.placement.rank_of(static_cast<Stage>(s), replica);
            if (rank < end && options_of(problem_, s) >= way) choice[s] = way;
          }
        }
        if (may_probe()) probe(choice);
      }
    }
  }

  // One stage after the other, again and again until none helps.
  void probe_stages() {
    for (bool better = true; better && may_probe();) {
      better = false;
      for (std::size_t s = 0; s < best_.size(); ++s) {
        const auto ways = static_cast<std::uint8_t>(options_of(problem_, s));
        for (std::uint8_t way = 0; way <= ways && ways > 0; ++way) {
          Choice choice = best_;
          choice[s] = way;
          better |= may_probe() && probe(choice);
        }
      }
    }
  }

  const Problem& problem_;
  const SearchBudget& budget_;
  Account meter_;
  std::int64_t tries_ = 0;  // schedules, of all searches at a time
  int searches_ = 1;        // at a time
  std::span<const Schedule> seeds_;
  std::vector<Choice> seeded_;  // choices that seeds make
  std::vector<Choice> tried_;
  Choice best_;
  Merit merit_;
  std::optional<SearchResult> result_;
  LowerBound bound_;
};

// The better at the goal, with the faster of both fastest orders. The bound is the first one's.
void take_better(ChosenSearch& best, ChosenSearch other) {
  const auto merit = [](const SearchResult& result) {
    return std::pair(result.objective, result.makespan);
  };
  SearchResult& result = best.result;
  other.result.lower_bound = result.lower_bound;
  other.result.bound_argument = result.bound_argument;
  other.result.iterations += result.iterations;
  other.result.searches += result.searches;
  result.iterations = other.result.iterations;
  result.searches = other.result.searches;
  SearchResult& faster = other.result.best_makespan < result.best_makespan ? other.result : result;
  const Time best_makespan = faster.best_makespan;
  Schedule fastest = std::move(faster.fastest);
  if (merit(other.result) < merit(result)) best = std::move(other);
  best.result.best_makespan = best_makespan;
  best.result.fastest = std::move(fastest);
}

}  // namespace

std::vector<Schedule> seeds_for(const Problem& problem, std::span<const Schedule> seeds) {
  std::vector<Schedule> fitted;
  for (const Schedule& seed : seeds) {
    fitted.push_back(verify(problem, seed).empty() ? seed : with_restores(problem, seed));
  }
  return fitted;
}

ChosenSearch search_choices(const Problem& problem, std::span<const Schedule> seeds,
                            const SearchBudget& budget) {
  if (!has_choices(problem)) return {problem, search(problem, seeds, budget)};
  return ChoiceSearch(problem, seeds, budget).run();
}

ChosenSearch search_choices_by(const Problem& problem, std::span<const Schedule> seeds,
                               const SearchBudget& budget, const GoalSearch& search_on) {
  if (!has_choices(problem)) return {problem, search_on(problem, seeds, budget)};
  SearchBudget share = budget;
  if (share.time) *share.time /= 3;
  SearchBudget silent = share;
  silent.progress = nullptr;
  const ChosenSearch fast = search_choices(problem, seeds, silent);
  std::vector<Schedule> more(seeds.begin(), seeds.end());
  more.push_back(fast.result.schedule);
  more.back().name = fast.result.found_by;
  const auto search_under = [&](const Problem& chosen) {
    return ChosenSearch{chosen, search_on(chosen, seeds_for(chosen, more), share)};
  };
  ChosenSearch best = search_under(fast.problem);
  SearchResult& result = best.result;
  if (result.found_by == "seed " + fast.result.found_by) result.found_by = fast.result.found_by;
  result.lower_bound = std::min(result.makespan, fast.result.lower_bound);
  result.bound_argument = fast.result.bound_argument;
  result.iterations += fast.result.iterations;
  result.searches += fast.result.searches;
  const Problem kept = chosen(problem, Choice(static_cast<std::size_t>(problem.stages()), 0));
  if (!same_kinds(kept, fast.problem) && fits(kept)) take_better(best, search_under(kept));
  return best;
}

}  // namespace counterflow
