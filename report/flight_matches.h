#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "report/flight_dump.h"

namespace counterflow {

// The records of all ranks, and who meets whom in them: messages first in, first out on each
// channel of a process group, collectives by their number.
class FlightMatches {
 public:
  // An entry of a rank.
  struct Ref {
    Rank rank = 0;
    std::size_t index = 0;
    friend auto operator<=>(const Ref&, const Ref&) = default;
  };
  // (group, source, destination), groups numbered over all ranks.
  using Channel = std::tuple<std::uint32_t, Rank, Rank>;
  struct Side {
    std::vector<Ref> posted;
    std::optional<Ref> first_open;
  };
  struct Ends {
    Side sends, receives;
  };
  // (group, number) of a collective, and what each member calls there.
  using Calls = std::map<Rank, std::vector<Ref>>;

  // The records must outlive it. O(entries log entries).
  explicit FlightMatches(const std::vector<FlightDump>& dumps);

  [[nodiscard]] const std::vector<FlightDump>& dumps() const { return dumps_; }
  [[nodiscard]] bool has(Rank rank) const { return by_rank_.contains(rank); }
  [[nodiscard]] const FlightDump& dump(Rank rank) const { return *by_rank_.at(rank); }
  // Ranks with a record, and those named by any, ascending.
  [[nodiscard]] std::vector<Rank> ranks() const;
  [[nodiscard]] const std::set<Rank>& known() const { return known_; }
  // Is there a record of the rank from its first entry on?
  [[nodiscard]] bool whole(Rank rank) const;

  [[nodiscard]] const FlightEntry& entry(Ref ref) const {
    return dump(ref.rank).entries[ref.index];
  }
  // The number of an entry's group among those of all ranks.
  [[nodiscard]] std::uint32_t group(Ref ref) const {
    return groups_.at(ref.rank)[entry(ref).group];
  }
  [[nodiscard]] const FlightGroup& group_of(Ref ref) const {
    return dump(ref.rank).groups[entry(ref).group];
  }
  // The same of an entry that is in no list, such as one that has not begun.
  [[nodiscard]] std::uint32_t group(Rank rank, const FlightEntry& entry) const {
    return groups_.at(rank)[entry.group];
  }
  // Its place on its side of its channel, or among the calls of its number.
  [[nodiscard]] std::size_t place(Ref ref) const { return places_.at(ref.rank)[ref.index]; }
  // The other end of a message, as far as the records go.
  [[nodiscard]] std::optional<Ref> counterpart(Ref ref) const;
  [[nodiscard]] const std::map<Channel, Ends>& channels() const { return channels_; }
  [[nodiscard]] const std::map<std::pair<std::uint32_t, std::int64_t>, Calls>& collectives() const {
    return collectives_;
  }
  [[nodiscard]] const Calls& calls(Ref ref) const {
    return collectives_.at({group(ref), entry(ref).sequence});
  }
  // What a rank has posted and not completed, the first of it, as posted.
  [[nodiscard]] const std::vector<Ref>& open(Rank rank) const;

  // What an entry is called in words.
  [[nodiscard]] std::string called(Ref ref) const;

 private:
  void index(const FlightDump& dump);
  void add(Ref ref, const FlightEntry& entry);
  [[nodiscard]] const Side& other_side(Ref ref) const;

  const std::vector<FlightDump>& dumps_;
  std::map<Rank, const FlightDump*> by_rank_;
  std::map<Rank, std::vector<std::size_t>> places_;
  std::map<Channel, Ends> channels_;
  std::map<std::pair<std::uint32_t, std::int64_t>, Calls> collectives_;
  std::map<FlightGroup, std::uint32_t> numbers_;
  std::map<Rank, std::vector<std::uint32_t>> groups_;  // the numbers of each rank's groups
  std::map<Rank, std::vector<Ref>> open_;
  std::set<Rank> known_;
};

// The other rank of a message.
[[nodiscard]] inline Rank peer_of(const FlightEntry& entry) {
  return entry.kind == FlightEntry::Kind::send ? entry.destination : entry.source;
}
// Do the two ends of a message agree?
[[nodiscard]] inline bool fits(const FlightEntry& a, const FlightEntry& b) {
  return a.sizes == b.sizes && a.types == b.types;
}

}  // namespace counterflow
