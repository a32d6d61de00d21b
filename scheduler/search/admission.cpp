#include "scheduler/search/admission.h"

#include <algorithm>
#include <tuple>

namespace counterflow {
namespace {

using LaneId = SearchModel::LaneId;

// The lanes of a rank as one microbatch would run them with nothing beside it.
std::vector<LaneId> lanes_alone(const SearchModel& model, std::size_t rank) {
  std::vector<LaneId> lanes;
  for (LaneId id = model.rank_begin[rank]; id < model.rank_begin[rank + 1]; ++id) {
    lanes.push_back(id);
  }
  std::ranges::stable_sort(lanes, {}, [&model](LaneId id) {
    const SearchModel::Lane& lane = model.lanes[id];
    const bool forward = lane.kind == OpKind::forward;
    return std::tuple(!forward, forward ? lane.stage : -lane.stage,
                      lane.kind == OpKind::backward_weight);
  });
  if (model.is_reversed) std::ranges::reverse(lanes);
  return lanes;
}

}  // namespace

Admission::Admission(const SearchModel& model)
    : model_(model),
      takes_(model.lanes.size(), 0),
      shared_(model.ranks(), 0),
      holders_(model.ranks()),
      next_(model.lanes.size(), 0),
      used_(model.ranks()) {
  std::vector<int> holding(model.ranks(), 0);
  for (LaneId id = 0; id < model.lanes.size(); ++id) {
    const SearchModel::Lane& lane = model.lanes[id];
    if (lane.allocated == SearchModel::Amount{}) continue;
    const auto rank = static_cast<std::size_t>(lane.rank);
    takes_[id] = 1;
    holders_[rank].push_back(id);
    ++holding[rank];
  }
  for (std::size_t rank = 0; rank < shared_.size(); ++rank) {
    shared_[rank] = holding[rank] > 1 ? 1 : 0;
  }
  for (std::size_t d = 0; d < model.sequences.size(); ++d) {
    older_others_[d].resize(model.sequences[d].size());
  }
  for (std::size_t rank = 0; model.restores && rank < model.ranks(); ++rank) {
    alone_.push_back(lanes_alone(model, rank));
  }
  if (model.allocations.empty()) return;
  prefixes_.resize(model.lanes.size());
  for (LaneId id = 0; id < model.lanes.size(); ++id) {
    prefixes_[id].push_back(0);
    for (std::uint32_t number = 0; number < model.lanes[id].count; ++number) {
      prefixes_[id].push_back(prefixes_[id].back() + model.allocations[model.id(id, number)]);
    }
  }
}

void Admission::reset() {
  entered_ = {};
  std::fill(next_.begin(), next_.end(), 0);
  std::fill(used_.begin(), used_.end(), SearchModel::Amount{});
}

void Admission::begin(LaneId lane, SearchModel::OpId op) {
  const std::uint32_t number = next_[lane]++;
  if (!model_.has_limits) return;
  const std::size_t direction = model_.lanes[lane].direction;
  if (model_.sequences.size() > 1 && number == entered_[direction]) {
    older_others_[direction][number] = entered_[1 - direction];
    ++entered_[direction];
  }
  SearchModel::Amount& used = used_[static_cast<std::size_t>(model_.lanes[lane].rank)];
  for (int r = 0; r < SearchModel::kResources; ++r) {
    used[static_cast<std::size_t>(r)] += model_.allocated(lane, op, r) - model_.freed(lane, op, r);
  }
}

bool Admission::admits(LaneId lane) const {
  const auto rank = static_cast<std::size_t>(model_.lanes[lane].rank);
  const SearchModel::OpId op = model_.id(lane, next_[lane]);
  for (std::size_t r = 0; r < SearchModel::kResources; ++r) {
    const std::int64_t limit = model_.limits[rank][r];
    if (limit >= SearchModel::kUnlimited) continue;
    if (used_[rank][r] + model_.allocated(lane, op, static_cast<int>(r)) > limit) return false;
    if (model_.restores) {
      if (!all_finish(lane, rank, r)) return false;
    } else if (shared_[rank] != 0 && !is_safe(lane, rank, r)) {
      return false;
    }
  }
  return true;
}

std::int64_t Admission::total(LaneId lane, std::size_t resource, std::uint32_t from,
                              std::uint32_t to) const {
  if (resource != 0 || prefixes_.empty()) {
    return model_.lanes[lane].allocated[resource] * static_cast<std::int64_t>(to - from);
  }
  return prefixes_[lane][to] - prefixes_[lane][from];
}

// What the rank holds at most while microbatch `number` of a direction finishes, all older ones
// done and no younger one going on.
std::int64_t Admission::peak_at(LaneId taking, std::size_t rank, std::size_t resource,
                                std::uint8_t direction, std::uint32_t number) const {
  std::int64_t held = 0;     // by the younger ones, and by this one
  std::int64_t passing = 0;  // the most that only passes through
  for (const LaneId id : holders_[rank]) {
    const SearchModel::Lane& lane = model_.lanes[id];
    const std::uint32_t begun_here = begun(id, taking);
    std::uint32_t from = number;
    if (lane.direction == direction) {
      if (begun_here <= number) {
        const std::int64_t missing = total(id, resource, number, number + 1);
        if (lane.allocates) {
          held += missing;
        } else {
          passing = std::max(passing, missing);
        }
        continue;
      }
    } else {
      from = older_others_[direction][number];
    }
    if (lane.allocates && begun_here > from) held += total(id, resource, from, begun_here);
  }
  return model_.chain ? std::max(held, passing) : held + passing;
}

bool Admission::is_safe(LaneId taking, std::size_t rank, std::size_t resource) const {
  const std::int64_t limit = model_.limits[rank][resource];
  const bool several = model_.sequences.size() > 1;
  for (std::size_t d = 0; d < model_.sequences.size(); ++d) {
    const auto direction = static_cast<std::uint8_t>(d);
    std::uint32_t first = static_cast<std::uint32_t>(model_.sequences[d].size());
    const std::uint32_t count = first;
    std::uint32_t last = 0;
    for (const LaneId id : holders_[rank]) {
      if (model_.lanes[id].direction != direction) continue;
      first = std::min(first, begun(id, taking));
      last = std::max(last, begun(id, taking));
    }
    // One that has not entered yet will come after all others.
    if (first >= count || (several && first >= entered_[d])) continue;
    if (prefixes_.empty() || resource != 0) last = first;
    for (std::uint32_t number = first; number <= last && number < count; ++number) {
      if (several && number >= entered_[d]) break;
      if (peak_at(taking, rank, resource, direction, number) > limit) return false;
    }
  }
  return true;
}

Admission::Claim Admission::claim_of(LaneId taking, std::size_t rank, std::size_t resource,
                                     std::uint8_t direction, std::uint32_t number) const {
  Claim claim;
  std::int64_t ahead = 0;  // what the ops still to run have allocated and not freed
  const auto r = static_cast<int>(resource);
  for (const LaneId id : alone_[rank]) {
    if (model_.lanes[id].direction != direction) continue;
    const SearchModel::OpId op = model_.id(id, number);
    const std::int64_t allocated = model_.allocated(id, op, r);
    const std::int64_t change = allocated - model_.freed(id, op, r);
    if (begun(id, taking) > number) {
      claim.held += change;
      continue;
    }
    claim.is_done = false;
    claim.more = std::max(claim.more, ahead + allocated);
    ahead += change;
  }
  return claim;
}

// Everything the older ones held is free by the time a microbatch finishes.
bool Admission::all_finish(LaneId taking, std::size_t rank, std::size_t resource) const {
  const SearchModel::OpId op = model_.id(taking, next_[taking]);
  const auto r = static_cast<int>(resource);
  std::int64_t room = model_.limits[rank][resource] - used_[rank][resource] -
                      model_.allocated(taking, op, r) + model_.freed(taking, op, r);
  std::array<std::uint32_t, 2> at{};   // the first of each direction that is not done here
  std::array<std::uint32_t, 2> end{};  // past the last that has entered the pipeline
  for (std::uint8_t d = 0; d < model_.sequences.size(); ++d) {
    at[d] = static_cast<std::uint32_t>(model_.sequences[d].size());
    for (const LaneId id : alone_[rank]) {
      if (model_.lanes[id].direction != d) continue;
      at[d] = std::min(at[d], begun(id, taking));
      end[d] = std::max(end[d], begun(id, taking));
    }
    if (model_.sequences.size() > 1) end[d] = std::max(end[d], entered_[d]);
  }
  const auto is_older = [&](std::uint32_t first, std::uint32_t second) {
    // One that enters just now comes after all others.
    return second >= entered_[1] || (first < entered_[0] && older_others_[1][second] > first);
  };
  while (at[0] < end[0] || at[1] < end[1]) {
    const bool first = at[1] >= end[1] || (at[0] < end[0] && is_older(at[0], at[1]));
    const std::uint8_t d = first ? 0 : 1;
    const Claim claim = claim_of(taking, rank, resource, d, at[d]++);
    if (!claim.is_done && claim.more > room) return false;
    room += claim.held;
  }
  return true;
}

}  // namespace counterflow
