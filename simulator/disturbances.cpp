#include "simulator/disturbances.h"

#include <algorithm>
#include <cmath>

namespace counterflow::sim {
namespace {

constexpr double kStandsStill = std::numeric_limits<double>::infinity();

template <typename... Case>
struct Overloaded : Case... {
  using Case::operator()...;
};
template <typename... Case>
Overloaded(Case...) -> Overloaded<Case...>;

std::size_t index(Rank rank) {
  return static_cast<std::size_t>(rank);
}

}  // namespace

void Pace::slow(std::int64_t from, std::int64_t until, double factor) {
  const auto cut = [&](std::int64_t at) {
    const auto after = std::ranges::upper_bound(steps_, at, {}, &Step::from);
    const Step before = *(after - 1);
    if (before.from != at) steps_.insert(after, {at, before.factor});
  };
  cut(from);
  if (until != kNever) cut(until);
  for (Step& step : steps_) {
    if (step.from >= from && step.from < until) step.factor *= factor;
  }
}

std::int64_t Pace::end(std::int64_t at, std::int64_t work) const {
  if (at == kNever) return kNever;
  auto step = std::ranges::upper_bound(steps_, at, {}, &Step::from) - 1;
  constexpr double kFar = 0x1p62;
  for (auto left = static_cast<double>(work);; ++step) {
    const bool last = step + 1 == steps_.end();
    const std::int64_t until = last ? kNever : (step + 1)->from;
    if (step->factor != kStandsStill) {
      if (step->factor == 1 && (last || at + work <= until) && left == static_cast<double>(work)) {
        return at + work;
      }
      const double lasts = left * step->factor;
      if (last) return lasts < kFar ? at + std::llround(lasts) : kNever;
      if (lasts <= static_cast<double>(until - at)) return at + std::llround(lasts);
      left -= static_cast<double>(until - at) / step->factor;
    } else if (last) {
      return kNever;
    }
    at = until;
  }
}

Disturbances::Disturbances(const Scenario& scenario, const Links& links, std::size_t ranks)
    : ranks_(ranks), fails_at_(ranks, kNever) {
  std::map<SharedLinkId, Pace> shared;
  for (const Scenario::Slowdown& each : scenario.slowdowns) {
    Pace& pace = std::visit(
        Overloaded{[&](const Scenario::OneRank& r) -> Pace& { return ranks_[index(r.rank)]; },
                   [&](const Scenario::OneLink& l) -> Pace& {
                     return pace_of(index(l.from), index(l.to));
                   },
                   [&](const Scenario::OneShared& s) -> Pace& { return shared[s.link]; }},
        each.what);
    pace.slow(each.from.count(), each.until ? each.until->count() : kNever,
              each.factor.value_or(kStandsStill));
  }
  for (const Scenario::Failure& failure : scenario.failures) {
    fails_at_[index(failure.rank)] = failure.at.count();
  }
  list_changes(links, shared);
}

Pace& Disturbances::pace_of(std::size_t from, std::size_t to) {
  const std::pair pair{from, to};
  const auto found = std::ranges::find(links_, pair, &PairPace::pair);
  return found != links_.end() ? found->pace : links_.emplace_back(PairPace{pair, {}}).pace;
}

int Disturbances::pair_link(std::size_t from, std::size_t to) const {
  const auto found = std::ranges::find(links_, std::pair{from, to}, &PairPace::pair);
  return found == links_.end() ? -1 : static_cast<int>(found - links_.begin());
}

const Pace* Disturbances::link(std::size_t from, std::size_t to) const {
  const int found = pair_link(from, to);
  return found < 0 ? nullptr : &links_[static_cast<std::size_t>(found)].pace;
}

void Disturbances::list_changes(const Links& links, const std::map<SharedLinkId, Pace>& shared) {
  if (links.topology() == nullptr) return;
  const Topology& topology = *links.topology();
  const auto add = [&](const Pace& pace, std::size_t link, double bandwidth) {
    for (const Pace::Step& step : pace.steps()) {
      // An unlimited link is no slower for being slowed, unless nothing moves at all.
      const double capacity = step.factor == kStandsStill ? 0 : bandwidth * 1e-9 / step.factor;
      changes_.push_back({step.from, false, static_cast<std::uint32_t>(link), capacity});
    }
  };
  for (const auto& [link, pace] : shared) add(pace, link, topology.links()[link].bandwidth);
  for (std::size_t i = 0; i < links_.size(); ++i) {
    const auto& [from, to] = links_[i].pair;
    add(links_[i].pace, topology.links().size() + i,
        topology.bandwidth(static_cast<Rank>(from), static_cast<Rank>(to)).value_or(kStandsStill));
  }
  for (std::size_t rank = 0; rank < fails_at_.size(); ++rank) {
    if (fails_at_[rank] == kNever) continue;
    changes_.push_back({fails_at_[rank], true, static_cast<std::uint32_t>(rank), 0});
  }
  std::ranges::stable_sort(changes_, {}, &Change::at);
}

}  // namespace counterflow::sim
