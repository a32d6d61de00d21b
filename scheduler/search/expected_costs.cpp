#include "scheduler/search/expected_costs.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <utility>
#include <variant>
#include <vector>

#include "scheduler/graph/channels.h"

namespace counterflow {
namespace {

std::size_t index(Rank rank) {
  return static_cast<std::size_t>(rank);
}

// By how much something takes longer that is slow for a part of the time.
double slowness(const Scenario::Slowdown& slow, Time horizon) {
  constexpr double kMost = 1e3;
  const Time from = std::min(slow.from, horizon);
  const Time until = std::min(slow.until.value_or(horizon), horizon);
  if (until <= from) return 1;
  const auto share = static_cast<double>((until - from).count()) /
                     static_cast<double>(std::max(horizon, Time{1}).count());
  const double pace = 1 - share + (slow.factor ? share / *slow.factor : 0);
  return std::min(1 / std::max(pace, 1 / kMost), kMost);
}

double mean_factor(const Spread& spread) {
  return spread.distribution == Distribution::exponential ? 1 + spread.sigma : 1;
}

// How costs vary, looked up as the draws are.
class Expectation {
 public:
  Expectation(const Problem& problem, const Jitter& jitter, const Scenario& scenario, Time horizon)
      : jitter_(jitter),
        ranks_(problem.ranks()),
        of_rank_(index(ranks_), 1 + jitter.stragglers.probability * (jitter.stragglers.slow - 1)),
        of_link_(index(ranks_) * index(ranks_), 1) {
    for (const Jitter::OfRank& rank : jitter.ranks) of_rank_[index(rank.rank)] *= rank.slow;
    for (const Jitter::OfLink& l : jitter.links) of_link_[place(l.from, l.to)] *= l.slow;
    for (const Scenario::Slowdown& slow : scenario.slowdowns) {
      const double by = slowness(slow, horizon);
      if (const auto* rank = std::get_if<Scenario::OneRank>(&slow.what)) {
        of_rank_[index(rank->rank)] *= by;
      } else if (const auto* link = std::get_if<Scenario::OneLink>(&slow.what)) {
        of_link_[place(link->from, link->to)] *= by;
      }
    }
  }

  [[nodiscard]] std::size_t place(Rank from, Rank to) const {
    return index(from) * index(ranks_) + index(to);
  }
  [[nodiscard]] Spread of(Rank rank, OpKind kind) const {
    const auto own = std::ranges::find(jitter_.ranks, rank, &Jitter::OfRank::rank);
    if (own != jitter_.ranks.end() && own->spread) return *own->spread;
    const auto found = std::ranges::find(jitter_.kinds, kind, &std::pair<OpKind, Spread>::first);
    return found != jitter_.kinds.end() ? found->second : jitter_.compute;
  }
  [[nodiscard]] Spread of(Rank from, Rank to) const {
    const auto own = std::ranges::find_if(
        jitter_.links, [&](const auto& link) { return link.from == from && link.to == to; });
    return own != jitter_.links.end() && own->spread ? *own->spread : jitter_.transfer;
  }
  [[nodiscard]] bool any_link() const {
    const auto takes_longer = [](const Jitter::OfLink& link) {
      return link.spread && mean_factor(*link.spread) != 1;
    };
    return mean_factor(jitter_.transfer) != 1 || std::ranges::any_of(jitter_.links, takes_longer) ||
           std::ranges::any_of(of_link_, [](double by) { return by != 1; });
  }
  [[nodiscard]] double factor(Rank rank, OpKind kind) const {
    return of_rank_[index(rank)] * mean_factor(of(rank, kind));
  }
  [[nodiscard]] double factor(Rank from, Rank to) const {
    return of_link_[place(from, to)] * mean_factor(of(from, to));
  }

 private:
  const Jitter& jitter_;
  int ranks_;
  std::vector<double> of_rank_, of_link_;
};

Time scaled(Time cost, double by) {
  return Time{std::llround(static_cast<double>(cost.count()) * by)};
}

// Of the ops of a stage, whichever copy runs them.
double stage_factor(const Problem& problem, const Expectation& expected, Stage stage, OpKind kind) {
  double sum = 0;
  for (int replica = 0; replica < problem.placement.replicas(); ++replica) {
    sum += expected.factor(problem.placement.rank_of(stage, replica), kind);
  }
  return sum / problem.placement.replicas();
}

// A pair varies with its forward.
PairCosts expected_pairs(const Problem& problem, const Expectation& expected) {
  const PairCosts& given = problem.costs.pairs();
  PairCosts pairs;
  if (given.empty()) return pairs;
  for (Rank rank = 0; rank < problem.ranks(); ++rank) {
    for (const Chunk& forward : problem.placement.chunks_of(rank)) {
      for (const Chunk& backward : problem.placement.chunks_of(rank)) {
        const Time cost = given.find(forward.stage, backward.stage);
        if (cost < Time{0}) continue;
        const double by = stage_factor(problem, expected, forward.stage, OpKind::forward);
        pairs.set(forward.stage, backward.stage, scaled(cost, by));
      }
    }
  }
  return pairs;
}

Costs expected_compute(const Problem& problem, const Expectation& expected) {
  std::vector<StageCost> stages = problem.costs.stages();
  for (Stage stage = 0; stage < problem.stages(); ++stage) {
    StageCost& cost = stages[static_cast<std::size_t>(stage)];
    const auto grow = [&](Time& time, OpKind kind) {
      time = scaled(time, stage_factor(problem, expected, stage, kind));
    };
    grow(cost.forward, OpKind::forward);
    grow(cost.backward_input, OpKind::backward_input);
    grow(cost.backward_weight, OpKind::backward_weight);
    const Keeping keeping = problem.keeping_of(stage);
    grow(cost.store, keeping.store_kind());
    grow(cost.restore, keeping.restore_kind());
  }
  return Costs(std::move(stages), problem.costs.factors(), expected_pairs(problem, expected));
}

double ns(Time time) {
  return static_cast<double>(time.count());
}

double hop(const Problem& problem, const Channels::Channel& c) {
  return ns(problem.links.alone(c.source, c.destination, c.wire));
}

// Links on which a message of a pair of ranks takes as long as the longest of its channels.
Links links_of(const Problem& problem, const std::function<double(const Channels::Channel&)>& of) {
  const std::size_t ranks = index(problem.ranks());
  std::vector<Time> longest(ranks * ranks);
  const Channels channels(problem);
  for (Channels::Id id = 0; id < channels.size(); ++id) {
    const Channels::Channel& c = channels[id];
    if (!c.crosses_ranks()) continue;
    Time& own = longest[index(c.source) * ranks + index(c.destination)];
    own = std::max(own, Time{std::llround(of(c))});
  }
  return Links(problem.ranks(), std::move(longest), 0);
}

bool equal(const StageCost& a, const StageCost& b) {
  return a.forward == b.forward && a.backward_input == b.backward_input &&
         a.backward_weight == b.backward_weight && a.store == b.store && a.restore == b.restore;
}

}  // namespace

std::optional<Problem> with_expected_costs(const Problem& problem, const Jitter& jitter,
                                           const Scenario& scenario, Time horizon) {
  const Expectation expected(problem, jitter, scenario, horizon);
  Costs compute = expected_compute(problem, expected);
  if (!expected.any_link() && std::ranges::equal(compute.stages(), problem.costs.stages(), equal)) {
    return std::nullopt;
  }
  Problem slower = problem;
  slower.costs = std::move(compute);
  if (expected.any_link()) {
    slower.links = links_of(problem, [&](const Channels::Channel& c) {
      return expected.factor(c.source, c.destination) * hop(problem, c);
    });
  }
  return slower;
}

std::optional<Problem> with_late_messages(const Problem& problem, const Jitter& jitter,
                                          double deviations) {
  const Expectation expected(problem, jitter, {}, Time{0});
  bool any = false;
  Problem later = problem;
  later.links = links_of(problem, [&](const Channels::Channel& c) {
    const bool is_forward = c.kind == PayloadKind::activation;
    const OpKind kind = is_forward ? OpKind::forward : OpKind::backward_input;
    const StageCost& cost = problem.costs.stages()[static_cast<std::size_t>(c.from)];
    const double maker = ns(is_forward ? cost.forward : cost.backward_input);
    const double deviation =
        std::hypot(expected.of(c.source, kind).sigma * maker,
                   expected.of(c.source, c.destination).sigma * hop(problem, c));
    any |= deviation > 0;
    return hop(problem, c) + deviations * deviation;
  });
  if (!any) return std::nullopt;
  return later;
}

}  // namespace counterflow
