#include "report/flight_waits.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "report/flight_differences.h"
#include "scheduler/ir/schedule_file.h"

namespace counterflow {
namespace {

using Kind = FlightEntry::Kind;
using Ref = FlightMatches::Ref;

// Why an open entry does not end.
struct Status {
  enum class Kind : std::uint8_t { under_way, lost, absent, no_record };
  Kind kind = Kind::under_way;
  Rank rank = 0;  // of whom it waits for, or where it was lost
};

class Waits {
 public:
  Waits(const FlightMatches& matches, const ExpectedMessages* expected)
      : matches_(matches), expected_(expected) {}

  [[nodiscard]] std::optional<Finding> chain(Ref at) const {
    std::set<Ref> seen;
    for (;;) {
      if (!seen.insert(at).second) {
        return Finding{Finding::Kind::cycle, std::nullopt, matches_.called(at),
                       fmt::format("each waits for another, from {} of rank {} round to it again",
                                   matches_.called(at), at.rank)};
      }
      const Status status = status_of(at);
      if (status.kind == Status::Kind::under_way) return std::nullopt;
      if (status.kind == Status::Kind::no_record) {
        return Finding{Finding::Kind::no_record, status.rank, std::string(),
                       fmt::format("{} of rank {} waits for rank {}, which left no record",
                                   matches_.called(at), at.rank, status.rank)};
      }
      if (status.kind == Status::Kind::lost) return lost(at, status.rank);
      const std::optional<Ref> next = what_holds_back(status.rank, at);
      if (!next) return never_posted(at, status.rank);
      at = *next;
    }
  }

 private:
  [[nodiscard]] Finding lost(Ref at, std::optional<Rank> culprit) const {
    const std::optional<Ref> other = matches_.counterpart(at);
    const bool ended = other && matches_.entry(*other).completed;
    // What does not fit cannot arrive: then it is not for the sender to see to it.
    if (other && !fits(matches_.entry(at), matches_.entry(*other))) {
      const bool sends = matches_.entry(at).kind == Kind::send;
      culprit = who_deviates(matches_, expected_, sends ? at : *other, sends ? *other : at);
    }
    return {Finding::Kind::does_not_arrive, culprit,
            other ? matches_.called(*other) : matches_.called(at),
            fmt::format("{} of rank {} does not end, though rank {} has {} its end",
                        matches_.called(at), at.rank, peer_of(matches_.entry(at)),
                        ended ? "completed" : "posted")};
  }

  [[nodiscard]] Finding never_posted(Ref at, Rank culprit) const {
    const std::string op = awaited(at, culprit);
    std::string reason = fmt::format("{} of rank {} waits for rank {}, which has not posted {}",
                                     matches_.called(at), at.rank, culprit, op);
    const FlightDump& there = matches_.dump(culprit);
    if (there.notes && !there.notes->running.empty()) {
      reason += fmt::format(": it runs {}", fmt::join(there.notes->running, ", "));
    } else if (!there.entries.empty()) {
      const Ref last{culprit, there.entries.size() - 1};
      reason += fmt::format(": its last is {}, which {}", matches_.called(last),
                            matches_.entry(last).completed ? "has completed" : "has not completed");
    }
    return {Finding::Kind::never_posted, culprit, op, std::move(reason)};
  }

  // What `rank` should have posted for it: as its record, or the Program, calls it.
  [[nodiscard]] std::string awaited(Ref at, Rank rank) const {
    const FlightEntry& waiting = matches_.entry(at);
    if (waiting.kind == Kind::collective) return matches_.called(at);
    const bool sends = waiting.kind == Kind::receive;
    if (const auto& notes = matches_.dump(rank).notes) {
      for (const FlightEntry& each : notes->not_begun) {
        const bool same = matches_.group(rank, each) == matches_.group(at);
        if (same && each.sequence == waiting.sequence) return each.frame;
      }
    }
    if (const auto found = in_program(at, rank)) {
      const RankProgram& list = expected_->program().ranks[static_cast<std::size_t>(rank)];
      return to_string(list.instructions[*found].op);
    }
    return sends ? "the send" : "the receive";
  }

  // The instruction of `rank` that `at` waits for, if the Program has it.
  [[nodiscard]] std::optional<std::uint32_t> in_program(Ref at, Rank rank) const {
    const FlightEntry& waiting = matches_.entry(at);
    if (expected_ == nullptr || waiting.kind == Kind::collective) return std::nullopt;
    const auto found = expected_->place(
        rank, waiting, (waiting.kind == Kind::send) == (rank == at.rank), matches_.place(at));
    return found ? std::optional(found->instruction) : std::nullopt;
  }

  // Of the open entries of a rank, the first that keeps it from posting what `at` waits for.
  [[nodiscard]] std::optional<Ref> what_holds_back(Rank rank, Ref at) const {
    const FlightDump& there = matches_.dump(rank);
    const std::optional<std::uint32_t> wanted = in_program(at, rank);
    if (!wanted && there.notes && !there.notes->running.empty()) return std::nullopt;
    for (const Ref each : matches_.open(rank)) {
      if (status_of(each).kind == Status::Kind::under_way) continue;
      const std::optional<std::uint32_t> open = in_program(each, rank);
      if (wanted && open && !expected_->holds_back(rank, *open, *wanted)) continue;
      return each;
    }
    return std::nullopt;
  }

  [[nodiscard]] Status status_of(Ref ref) const {
    const FlightEntry& waiting = matches_.entry(ref);
    if (waiting.kind == Kind::collective) return status_of_collective(ref);
    const Rank peer = peer_of(waiting);
    if (!matches_.has(peer)) return {Status::Kind::no_record, peer};
    const std::optional<Ref> other = matches_.counterpart(ref);
    if (!other) return {Status::Kind::absent, peer};
    const bool acknowledged_late = waiting.kind == Kind::send && matches_.entry(*other).completed;
    if (acknowledged_late) return {};
    return {Status::Kind::lost, waiting.source};
  }

  [[nodiscard]] Status status_of_collective(Ref ref) const {
    const auto& ranks = matches_.calls(ref);
    const std::vector<Rank>& members = matches_.group_of(ref).members;
    for (const Rank member : members) {
      if (!matches_.has(member)) return {Status::Kind::no_record, member};
    }
    for (const Rank member : members) {
      const auto found = ranks.find(member);
      if (found == ranks.end() || found->second.size() <= matches_.place(ref)) {
        return {Status::Kind::absent, member};
      }
    }
    return {};  // all are there: nobody is at fault that could be seen
  }

  const FlightMatches& matches_;
  const ExpectedMessages* expected_;
};

}  // namespace

std::optional<Finding> first_wait(const FlightMatches& matches, const ExpectedMessages* expected) {
  std::vector<Ref> open;
  for (const Rank rank : matches.ranks()) {
    const std::vector<Ref>& of_rank = matches.open(rank);
    open.insert(open.end(), of_rank.begin(), of_rank.end());
  }
  std::ranges::stable_sort(open, {}, [&](Ref ref) { return matches.entry(ref).created_ns; });
  const Waits waits(matches, expected);
  for (const Ref ref : open) {
    if (std::optional<Finding> found = waits.chain(ref)) return found;
  }
  return std::nullopt;
}

}  // namespace counterflow
