#include "report/flight_matches.h"

#include <fmt/format.h>

namespace counterflow {
namespace {

// Of a rank's open entries the first say why it does not go on.
constexpr std::size_t kMostOpen = 256;

}  // namespace

FlightMatches::FlightMatches(const std::vector<FlightDump>& dumps) : dumps_(dumps) {
  for (const FlightDump& dump : dumps) {
    by_rank_.emplace(dump.rank, &dump);
    known_.insert(dump.known_ranks.begin(), dump.known_ranks.end());
    index(dump);
  }
}

std::vector<Rank> FlightMatches::ranks() const {
  std::vector<Rank> ranks;
  for (const auto& [rank, dump] : by_rank_) ranks.push_back(rank);
  return ranks;
}

bool FlightMatches::whole(Rank rank) const {
  const auto found = by_rank_.find(rank);
  return found != by_rank_.end() && found->second->from_the_beginning;
}

void FlightMatches::index(const FlightDump& dump) {
  std::vector<std::uint32_t>& numbers = groups_[dump.rank];
  for (const FlightGroup& group : dump.groups) {
    const auto next = static_cast<std::uint32_t>(numbers_.size());
    numbers.push_back(numbers_.emplace(group, next).first->second);
  }
  for (std::size_t i = 0; i < dump.entries.size(); ++i) add({dump.rank, i}, dump.entries[i]);
}

void FlightMatches::add(Ref ref, const FlightEntry& entry) {
  const std::uint32_t group = groups_[ref.rank][entry.group];
  std::vector<Ref>& open = open_[ref.rank];
  if (!entry.completed && open.size() < kMostOpen) open.push_back(ref);
  if (entry.kind == FlightEntry::Kind::collective) {
    std::vector<Ref>& list = collectives_[{group, entry.sequence}][ref.rank];
    places_[ref.rank].push_back(list.size());
    list.push_back(ref);
    return;
  }
  Ends& ends = channels_[{group, entry.source, entry.destination}];
  Side& side = entry.kind == FlightEntry::Kind::send ? ends.sends : ends.receives;
  places_[ref.rank].push_back(side.posted.size());
  side.posted.push_back(ref);
  if (!entry.completed && !side.first_open) side.first_open = ref;
}

const FlightMatches::Side& FlightMatches::other_side(Ref ref) const {
  const FlightEntry& mine = entry(ref);
  const Ends& ends = channels_.at({group(ref), mine.source, mine.destination});
  return mine.kind == FlightEntry::Kind::send ? ends.receives : ends.sends;
}

std::optional<FlightMatches::Ref> FlightMatches::counterpart(Ref ref) const {
  const Side& other = other_side(ref);
  if (!whole(ref.rank) || !whole(peer_of(entry(ref)))) return other.first_open;
  return place(ref) < other.posted.size() ? std::optional(other.posted[place(ref)]) : std::nullopt;
}

const std::vector<FlightMatches::Ref>& FlightMatches::open(Rank rank) const {
  static const std::vector<Ref> none;
  const auto found = open_.find(rank);
  return found == open_.end() ? none : found->second;
}

std::string FlightMatches::called(Ref ref) const {
  const FlightEntry& what = entry(ref);
  if (what.communicator && !what.frame.empty()) return what.frame;
  if (what.kind == FlightEntry::Kind::collective) {
    return fmt::format("{} {} of group '{}'", what.name, what.sequence, group_of(ref).name);
  }
  return fmt::format("{} {} from rank {} to rank {}", what.name, place(ref), what.source,
                     what.destination);
}

}  // namespace counterflow
