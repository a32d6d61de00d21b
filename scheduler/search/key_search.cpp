#include "scheduler/search/key_search.h"

#include <algorithm>
#include <array>

namespace counterflow {

KeySearch::KeySearch(Decoder& decoder, std::uint64_t seed)
    : decoder_(decoder), evaluator_(decoder.model()), random_(seed), keys_(decoder.model().ops()) {}

void KeySearch::shake(const SearchModel::Orders& orders, std::int64_t makespan, bool backwards) {
  const SearchModel& model = decoder_.model();
  evaluator_.evaluate(orders);
  const double width =
      static_cast<double>(period(model)) * random_.unit() * (random_.below(2) == 0 ? 0.3 : 2.0);
  // One op in so many, of ranks all or one.
  const std::uint32_t share = 1U + random_.below(8);
  const std::uint32_t some = random_.below(static_cast<std::uint32_t>(2 * model.ranks()));
  for (SearchModel::LaneId lane = 0; lane < model.lanes.size(); ++lane) {
    const SearchModel::Lane& its = model.lanes[lane];
    const bool shaken = some >= model.ranks() || some == static_cast<std::uint32_t>(its.rank);
    for (std::uint32_t number = 0; number < its.count; ++number) {
      const SearchModel::OpId op = model.id(lane, number);
      std::int64_t key = backwards ? makespan - evaluator_.ends()[op] : evaluator_.begins()[op];
      if (shaken && random_.below(8) < share) {
        key += static_cast<std::int64_t>((random_.unit() - 0.5) * width);
      }
      keys_[backwards ? model.id(lane, its.count - 1 - number) : op] = key;
    }
  }
}

void KeySearch::run(Elite& elite, BudgetMeter& meter, double until, std::int64_t target) {
  constexpr std::array kPatience{0, 2, 4, 8};
  while (meter.share() < until && elite.best() > target) {
    const auto size = static_cast<std::uint32_t>(elite.size());
    const Elite::Member& from = elite[std::min(random_.below(size), random_.below(size))];
    const bool backwards = random_.below(2) == 0;
    shake(from.orders, from.makespan, backwards);
    ListRule rule;
    rule.keys = keys_;
    rule.patience = kPatience[random_.below(kPatience.size())];
    const std::int64_t makespan = decoder_.decode(rule, backwards, elite.cutoff());
    meter.spend();
    if (makespan >= 0) elite.add(makespan, decoder_.orders());
  }
}

}  // namespace counterflow
