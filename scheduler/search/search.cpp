#include "scheduler/search/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/bounds/lower_bound.h"
#include "scheduler/bounds/span.h"
#include "scheduler/error.h"
#include "scheduler/graph/evaluate.h"
#include "scheduler/search/annealing.h"
#include "scheduler/search/decoder.h"
#include "scheduler/search/elite.h"
#include "scheduler/search/exact.h"
#include "scheduler/search/key_search.h"
#include "scheduler/search/least_memory.h"
#include "scheduler/search/replay.h"
#include "scheduler/search/sequences.h"
#include "scheduler/search/starts.h"
#include "scheduler/verify/verify.h"

namespace counterflow {
namespace {

// Problems of more ops than this are ranked on fewer microbatches.
constexpr std::size_t kReplayOps = 3'000;
// Up to so many ops, moves of single ops are worth an evaluation of the whole.
constexpr std::size_t kAnnealingOps = 20'000;
// Up to so many, a few of them where the critical path changes ranks.
constexpr std::size_t kDescentOps = 120'000;
constexpr std::size_t kEliteSize = 8;
// Where another objective chooses among them, each to be tried many times over.
constexpr std::size_t kChoice = 32;
constexpr std::size_t kChoiceOps = 100'000;  // of all that are chosen among
// Problems of more ops are not solved exactly within any usual budget.
constexpr std::size_t kExactOps = 250;
constexpr std::size_t kEndingOps = 120;

// What a makespan of a model that aims at spans has beyond the longest of them.
std::int64_t beyond_span(const SearchModel& model) {
  std::int64_t latest = 0;
  for (std::size_t rank = 0; rank < model.ranks(); ++rank) {
    std::int64_t head = SearchModel::kUnlimited;
    for (auto lane = model.rank_begin[rank]; lane < model.rank_begin[rank + 1]; ++lane) {
      head = std::min(head, model.lanes[lane].head);
    }
    if (head < SearchModel::kUnlimited) latest = std::max(latest, head);
  }
  return latest;
}

std::size_t choice_size(std::size_t ops) {
  return std::clamp<std::size_t>(kChoiceOps / std::max<std::size_t>(ops, 1), 4, kChoice);
}

// An objective takes half of the time.
SearchBudget budget_of_orders(SearchBudget budget, const SearchObjective& objective) {
  if (objective && budget.time) *budget.time /= 2;
  return budget;
}

class Search {
 public:
  Search(const Problem& problem, const SearchBudget& budget, const SearchObjective& objective)
      : problem_(problem),
        budget_(budget),
        objective_(objective),
        decoder_(problem, budget.goal == SearchGoal::span),
        meter_(budget_of_orders(budget, objective), decoder_.model().ops(), begin_),
        elite_(objective ? choice_size(decoder_.model().ops()) : kEliteSize),
        bound_of_makespan_(best_lower_bound(problem)),
        bound_(budget.goal == SearchGoal::span
                   ? beyond_span(decoder_.model()) + span_bound(problem).count()
                   : bound_of_makespan_.value.count()) {
    const auto shortages = memory_shortages(decoder_.model());
    if (!shortages.empty()) throw InfeasibleError(shortage_text(problem, shortages));
  }

  SearchResult run(std::span<const Schedule> seeds) {
    for (const Schedule& seed : seeds) {
      if (budget_.time && !elite_.empty() && meter_.is_spent()) break;
      const auto begin = BudgetMeter::Clock::now();
      take_seed(seed);
      // The answer is evaluated as a seed is.
      meter_.reserve(BudgetMeter::Clock::now() - begin);
    }
    if (!is_done()) raise_bound();
    if (has_nothing() || !is_listed()) list_schedules();
    const bool exactly =
        !is_for_span() && decoder_.model().ops() <= kExactOps && is_exactly_solvable(problem_);
    if (!is_done()) improve(exactly ? improve_share() : 1);
    if (exactly && !is_done()) solve();
    SearchResult found = result();
    if (objective_) choose(seeds, found);
    return found;
  }

 private:
  [[nodiscard]] bool is_for_span() const { return budget_.goal == SearchGoal::span; }
  [[nodiscard]] bool is_done() const { return elite_.best() <= bound_ || meter_.is_spent(); }
  [[nodiscard]] bool has_nothing() const { return elite_.empty() && seed_ == nullptr; }
  // Something must be found before the budget counts.
  [[nodiscard]] bool may_try() const {
    return has_nothing() ? !meter_.is_at_most() : !meter_.is_spent();
  }
  // An objective has the more to choose from, the more rules are tried.
  [[nodiscard]] bool is_listed() const { return objective_ ? meter_.is_spent() : is_done(); }

  void keep(std::int64_t makespan, const SearchModel::Orders& orders, std::string_view by) {
    const bool better = makespan < elite_.best();
    elite_.add(makespan, orders);
    if (better) note(by);
  }

  void note(std::string_view by) {
    found_by_ = by;
    if (budget_.progress) {
      budget_.progress({std::min(meter_.share(), 1.0), Time(elite_.best()), Time(bound_)});
    }
  }

  void take_seed(const Schedule& seed) {
    if (!verify(problem_, seed).empty()) return;
    const std::int64_t makespan = Evaluator(problem_).makespan(seed).count();
    if (makespan < 0) return;
    if (makespan < seed_makespan_) {
      seed_makespan_ = makespan;
      seed_ = &seed;
    }
    const SearchModel::Orders orders = decoder_.model().orders(seed);
    OrderEvaluator evaluator(decoder_.model());
    // The same order in the model's terms: no pair that saves nothing, B as I and W.
    if (const std::int64_t its = evaluator.evaluate(orders);
        its >= 0 && OrderMemory(decoder_.model()).fits(orders)) {
      keep(its, orders, fmt::format("seed {}", seed.name));
    }
  }

  // What the quick bound leaves out of a large problem, if that is a small part of the budget.
  void raise_bound() {
    const std::size_t ops = decoder_.model().ops();
    if (is_for_span() || ops <= kQuickJacksonOps) return;
    constexpr Time kOp{400};  // what it takes an op
    if (budget_.time && meter_.affords(kOp * static_cast<std::int64_t>(ops)) < 10) return;
    prove(best_lower_bound(problem_, BoundEffort::full));
  }

  void prove(const LowerBound& proven) {
    if (proven.value > bound_of_makespan_.value) bound_of_makespan_ = proven;
    bound_ = std::max(bound_, proven.value.count());
  }

  // ---- list scheduling ----------------------------------------------------------------------

  void list_schedules() {
    const std::vector<PriorityRule> grid = priority_grid(decoder_.model(), budget_.seed);
    std::vector<PriorityRule> rules = grid;
    std::string_view by = "list scheduling";
    // In little time an order that is there already is better moved than replaced.
    const double listing = !has_nothing() && turns_of(decoder_.model().ops()) == 0 ? 0.4 : 1;
    const int few = ranking_microbatches(problem_);
    const bool large = decoder_.model().ops() > kReplayOps && few < problem_.microbatches;
    if (large) {
      by = "replay";
      rules =
          ranked(with_microbatches(problem_, few), is_for_span(), grid, meter_,
                 meter_.share() + listing * kRankingShare, [this, by](const PriorityRule& rule) {
                   if (may_try()) try_rule(decoder_, rule, by);
                   return is_done();
                 });
    }
    const auto orders_of_microbatches = microbatch_sequences(problem_);
    std::vector<std::unique_ptr<Decoder>> decoders;
    for (const auto& sequence : orders_of_microbatches) {
      decoders.push_back(std::make_unique<Decoder>(problem_, is_for_span(), sequence));
    }
    const double until = meter_.share() + listing * kListShare;
    for (std::size_t i = 0; i < rules.size(); ++i) {
      if (!may_try()) return;
      if (!has_nothing() && (is_listed() || meter_.share() > until)) return;
      const std::size_t which = i % (decoders.size() + 1);
      try_rule(which == 0 ? decoder_ : *decoders[which - 1], rules[i], by);
    }
    for (std::size_t i = 0; has_nothing() && may_try() && i < grid.size(); ++i) {
      try_rule(decoder_, grid[i], by);
    }
  }

  void try_rule(Decoder& decoder, const PriorityRule& rule, std::string_view by) {
    meter_.spend();
    const std::int64_t makespan = decoder.decode(rule, elite_.cutoff());
    if (makespan < 0) return;
    if (&decoder == &decoder_) {
      keep(makespan, decoder.orders(), by);
    } else {
      keep(makespan, decoder_.model().orders(decoder.model().schedule(decoder.orders())), by);
    }
  }

  // ---- local search -------------------------------------------------------------------------

  void improve(double end) {
    if (elite_.empty()) return;
    const SearchModel& model = decoder_.model();
    const std::int64_t turns = turns_of(model.ops());
    if (model.ops() > kAnnealingOps || turns == 0) {
      if (model.ops() <= kDescentOps) descend(meter_.share() + (end - meter_.share()) / 2);
      if (is_done()) return;
      change_keys(end, budget_.seed + 1);
      return;
    }
    // Many short rounds, by moves and by keys in turn: a cool one mends a good order, a hot one
    // leaves it for another. Keys reach orders that differ on many ranks at once, as tight memory
    // asks for.
    constexpr std::array kHeats{0.002, kByKeys, 0.01, kByKeys, 0.03, kByKeys};
    const auto rounds = static_cast<int>(turns * static_cast<std::int64_t>(kHeats.size()));
    OrderAnnealing annealing(model, budget_.seed + 2);
    for (int round = 0; round < rounds && !is_done(); ++round) {
      const double share = meter_.share();
      const double until = share + (end - share) / (rounds - round);
      const double heat = kHeats[static_cast<std::size_t>(round) % kHeats.size()];
      if (heat == kByKeys) {
        change_keys(until, budget_.seed + 3 + static_cast<std::uint64_t>(round));
        continue;
      }
      const auto from = static_cast<std::size_t>(round) % elite_.size();
      annealing.start(elite_[from].orders);
      annealing.run(meter_, until, bound_, heat * static_cast<double>(elite_.best()));
      keep(annealing.best_makespan(), annealing.best(), "annealing");
    }
  }

  // So often can all heats be taken in turn, each for long enough to come to something.
  [[nodiscard]] std::int64_t turns_of(std::size_t ops) const {
    constexpr Time kOp{20};
    constexpr std::int64_t kTries = 600;
    const std::int64_t tries = meter_.affords(kOp * static_cast<std::int64_t>(ops));
    return std::clamp<std::int64_t>(tries / kTries, 0, 5);
  }

  void change_keys(double until, std::uint64_t seed) {
    const std::int64_t before = elite_.best();
    KeySearch(decoder_, seed).run(elite_, meter_, until, bound_);
    if (elite_.best() < before) note("keys");
  }

  // Moves from the best order, none for the worse.
  void descend(double until) {
    OrderAnnealing annealing(decoder_.model(), budget_.seed + 2);
    annealing.start(elite_[0].orders);
    annealing.run(meter_, until, bound_, 0);
    keep(annealing.best_makespan(), annealing.best(), "annealing");
  }

  // A tree of more ops seldom ends.
  [[nodiscard]] double improve_share() const {
    return decoder_.model().ops() <= kEndingOps ? kImproveShare : 1 - (1 - kImproveShare) / 4;
  }
  // What a node of the tree takes, about.
  [[nodiscard]] Time node_time() const {
    return std::chrono::nanoseconds(800) * static_cast<std::int64_t>(decoder_.model().ops());
  }

  // What is left goes into a proof: a shorter order, or a higher bound.
  void solve() {
    const Schedule best = decoder_.model().schedule(elite_[0].orders);
    const ExactResult exact =
        solve_exactly(problem_, &best, {.nodes = meter_.affords(node_time())});
    prove({exact.bound, "exact"});
    if (exact.makespan >= Time{0} && exact.makespan.count() < elite_.best()) {
      keep(exact.makespan.count(), decoder_.model().orders(exact.schedule), "exact");
    }
  }

  // ---- the answer ---------------------------------------------------------------------------

  // The best by the objective, of equals the fastest, of what was found already and, as far as the
  // time goes, the seeds and the elite.
  void choose(std::span<const Schedule> seeds, SearchResult& found) const {
    using Clock = BudgetMeter::Clock;
    Clock::duration longest{0};  // that an order took
    const auto judge = [&](const Schedule& schedule) {
      const auto begin = Clock::now();
      const Time cost = objective_(schedule);
      longest = std::max(longest, Clock::now() - begin);
      return cost;
    };
    const auto has_time = [&] {
      return !budget_.time || Clock::now() + longest <= begin_ + *budget_.time;
    };
    found.fastest = found.schedule;
    Time best = judge(found.schedule);
    Evaluator evaluator(problem_);
    const auto consider = [&](Schedule schedule, std::string by) {
      const Time makespan = evaluator.makespan(schedule);
      // Where time did not suffice for all seeds.
      if (makespan < found.best_makespan) {
        found.fastest = schedule;
        found.best_makespan = makespan;
      }
      if (!has_time()) return;
      const Time cost = judge(schedule);
      if (std::pair(cost, makespan) >= std::pair(best, found.makespan)) return;
      best = cost;
      found.makespan = makespan;
      found.schedule = std::move(schedule);
      found.found_by = std::move(by);
    };
    for (const Schedule& seed : seeds) {
      // One for which there is no time may still be the fastest.
      if (!has_time() && evaluator.makespan(seed) >= found.best_makespan) continue;
      if (verify(problem_, seed).empty()) consider(seed, fmt::format("seed {}", seed.name));
    }
    for (std::size_t i = 0; i < elite_.size() && has_time(); ++i) {
      consider(decoder_.model().schedule(elite_[i].orders), found_by_);
    }
    found.schedule.name = "search";
    found.objective = best;
  }

  SearchResult result() {
    SearchResult result;
    if (elite_.empty() && seed_ == nullptr) {
      throw InfeasibleError(fmt::format(
          "no order was found within the memory limits, though none of them is below what one "
          "microbatch needs on its rank; raise {}",
          problem_.limits.bytes.empty() ? "memory.limit_activations" : "memory.limit"));
    }
    result.lower_bound = bound_of_makespan_.value;
    result.bound_argument = bound_of_makespan_.argument;
    result.iterations = meter_.iterations();
    Evaluator evaluator(problem_);
    if (!elite_.empty()) {
      result.schedule = decoder_.model().schedule(elite_[0].orders);
      result.makespan = evaluator.makespan(result.schedule);
      result.found_by = found_by_;
    }
    const bool seed_is_best = !is_for_span() && result.makespan.count() > seed_makespan_;
    if (seed_ != nullptr && (elite_.empty() || seed_is_best)) {
      result.schedule = *seed_;
      result.makespan = Time(seed_makespan_);
      result.found_by = fmt::format("seed {}", seed_->name);
    }
    if (is_for_span() && !elite_.empty()) {
      result.span = Time(elite_.best() - beyond_span(decoder_.model()));
      result.span_bound = Time(bound_ - beyond_span(decoder_.model()));
    }
    result.schedule.name = "search";
    result.best_makespan = result.makespan;
    return result;
  }

  static constexpr double kByKeys = -1;  // in place of a heat
  static constexpr double kRankingShare = 0.35;
  static constexpr double kListShare = 0.25;
  static constexpr double kImproveShare = 0.8;

  const BudgetMeter::Clock::time_point begin_ = BudgetMeter::Clock::now();
  const Problem& problem_;
  const SearchBudget& budget_;
  const SearchObjective& objective_;
  Decoder decoder_;
  BudgetMeter meter_;
  Elite elite_;
  LowerBound bound_of_makespan_;
  std::int64_t bound_;  // of what is kept small
  const Schedule* seed_ = nullptr;
  std::int64_t seed_makespan_ = SearchModel::kUnlimited;
  std::string found_by_;
};

}  // namespace

SearchResult search(const Problem& problem, std::span<const Schedule> seeds,
                    const SearchBudget& budget, const SearchObjective& objective) {
  if (!problem.phases.empty()) {
    throw InputError(
        "a search orders one pass over the stages, and pipeline.phases has others; name a schedule "
        "family, or leave a single phase to train");
  }
  const std::size_t ops = 3 * static_cast<std::size_t>(problem.stages()) *
                          static_cast<std::size_t>(problem.microbatches);
  const int starts = objective ? 1 : starts_of(budget, ops);
  const auto once = [&](const SearchBudget& own) {
    return Search(problem, own, objective).run(seeds);
  };
  return starts > 1 ? search_from(starts, budget, once) : once(budget);
}

}  // namespace counterflow
