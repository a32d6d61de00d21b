#include "scheduler/search/admission.h"

#include <algorithm>

namespace counterflow {

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

bool Admission::fits(LaneId lane) const {
  const auto rank = static_cast<std::size_t>(model_.lanes[lane].rank);
  const SearchModel::OpId op = model_.id(lane, next_[lane]);
  for (std::size_t r = 0; r < SearchModel::kResources; ++r) {
    const std::int64_t limit = model_.limits[rank][r];
    if (limit >= SearchModel::kUnlimited) continue;
    if (used_[rank][r] + model_.allocated(lane, op, static_cast<int>(r)) > limit) return false;
    if (shared_[rank] != 0 && !is_safe(lane, rank, r)) return false;
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

}  // namespace counterflow
