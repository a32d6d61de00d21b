#include "scheduler/search/key_search.h"

#include <algorithm>
#include <array>

#include "scheduler/search/reverse.h"

namespace counterflow {
namespace {

// However many the elite keeps: whoever chooses among more still finds the same fastest.
constexpr std::size_t kParents = 8;

}  // namespace

KeySearch::KeySearch(Decoder& decoder, std::uint64_t seed)
    : decoder_(decoder),
      forwards_(decoder.model()),
      backwards_(decoder.reversed_model()),
      random_(seed),
      keys_(decoder.model().ops()) {}

void KeySearch::time(const SearchModel::Orders& orders, std::int64_t makespan, bool late) {
  const SearchModel& model = decoder_.model();
  if (!late || backwards_.evaluate(reversed(model, orders)) < 0) {
    forwards_.evaluate(orders);
    begins_ = forwards_.begins();
    ends_ = forwards_.ends();
    return;
  }
  begins_.resize(model.ops());
  ends_.resize(model.ops());
  for (SearchModel::LaneId lane = 0; lane < model.lanes.size(); ++lane) {
    const std::uint32_t count = model.lanes[lane].count;
    for (std::uint32_t number = 0; number < count; ++number) {
      const SearchModel::OpId op = model.id(lane, number);
      const SearchModel::OpId mirrored = model.id(lane, count - 1 - number);
      begins_[op] = makespan - backwards_.ends()[mirrored];
      ends_[op] = makespan - backwards_.begins()[mirrored];
    }
  }
}

void KeySearch::shake(std::int64_t makespan, bool backwards) {
  const SearchModel& model = decoder_.model();
  const double width =
      static_cast<double>(period(model)) * random_.unit() * (random_.below(2) == 0 ? 0.3 : 2.0);
  const auto shift = [&] { return static_cast<std::int64_t>((random_.unit() - 0.5) * width); };
  // One op in so many, of ranks all or one; or microbatches as wholes, everywhere alike.
  const std::uint32_t share = 1U + random_.below(8);
  const std::uint32_t some = random_.below(static_cast<std::uint32_t>(2 * model.ranks()));
  const bool whole = random_.below(3) == 0;
  if (whole) {
    shifts_.resize(model.sequences.size() * model.stride);
    for (std::int64_t& each : shifts_) each = random_.below(8) < share ? shift() : 0;
  }
  for (SearchModel::LaneId lane = 0; lane < model.lanes.size(); ++lane) {
    const SearchModel::Lane& its = model.lanes[lane];
    const bool shaken = some >= model.ranks() || some == static_cast<std::uint32_t>(its.rank);
    for (std::uint32_t number = 0; number < its.count; ++number) {
      const SearchModel::OpId op = model.id(lane, number);
      std::int64_t key = backwards ? makespan - ends_[op] : begins_[op];
      if (whole) {
        key += shifts_[its.direction * model.stride + number];
      } else if (shaken && random_.below(8) < share) {
        key += shift();
      }
      keys_[backwards ? model.id(lane, its.count - 1 - number) : op] = key;
    }
  }
}

void KeySearch::run(Elite& elite, BudgetMeter& meter, double until, std::int64_t target) {
  constexpr std::array kPatience{0, 2, 4, 8};
  while (meter.share() < until && elite.best() > target) {
    const auto size = static_cast<std::uint32_t>(std::min(elite.size(), kParents));
    const Elite::Member& from = elite[std::min(random_.below(size), random_.below(size))];
    const bool backwards = random_.below(2) == 0;
    // Backwards a fused pair is two ops.
    const bool late = !decoder_.model().has_pairs && random_.below(2) == 0;
    time(from.orders, from.makespan, late);
    shake(from.makespan, backwards);
    ListRule rule;
    rule.keys = keys_;
    rule.patience = kPatience[random_.below(kPatience.size())];
    const std::int64_t makespan = decoder_.decode(rule, backwards, elite.cutoff());
    meter.spend();
    if (makespan >= 0) elite.add(makespan, decoder_.orders());
  }
}

}  // namespace counterflow
