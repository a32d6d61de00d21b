#include "report/diagnosis.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "report/expected_messages.h"
#include "report/json/writer.h"
#include "report/report_json.h"
#include "scheduler/error.h"
#include "scheduler/ir/schedule_file.h"

namespace counterflow {
namespace {

using Kind = FlightEntry::Kind;

// Of a rank's open entries the first say why it does not go on.
constexpr std::size_t kMostOpen = 256;

// An entry of a rank.
struct Ref {
  Rank rank = 0;
  std::size_t index = 0;
  friend auto operator<=>(const Ref&, const Ref&) = default;
};

// Why an open entry does not end.
struct Status {
  enum class Kind : std::uint8_t { under_way, lost, absent, no_record };
  Kind kind = Kind::under_way;
  Rank rank = 0;  // of whom it waits for, or where it was lost
};

class Analyst {
 public:
  Analyst(const std::vector<FlightDump>& dumps, const Program* program) : dumps_(dumps) {
    if (program != nullptr) expected_.emplace(*program);
    for (const FlightDump& dump : dumps) {
      by_rank_.emplace(dump.rank, &dump);
      index(dump);
    }
  }

  Diagnosis run() {
    for (const auto& [rank, dump] : by_rank_) {
      result_.ranks.push_back(rank);
      known_.insert(dump->known_ranks.begin(), dump->known_ranks.end());
    }
    for (const Rank rank : known_) {
      if (!by_rank_.contains(rank)) result_.missing.push_back(rank);
    }
    what_the_run_said();
    compare_orders();
    compare_messages();
    compare_collectives();
    follow_who_waits();
    for (const Rank rank : result_.missing) {
      add(Finding::Kind::no_record, rank, {}, fmt::format("rank {} left no record", rank));
    }
    std::ranges::stable_sort(result_.findings, {}, &Finding::kind);
    return std::move(result_);
  }

 private:
  // (group, source, destination)
  using Channel = std::tuple<std::uint32_t, Rank, Rank>;
  struct Side {
    std::vector<Ref> posted;
    std::optional<Ref> first_open;
  };
  struct Ends {
    Side sends, receives;
  };

  void index(const FlightDump& dump) {
    std::vector<std::uint32_t>& numbers = groups_[dump.rank];
    for (const FlightGroup& group : dump.groups) {
      const auto next = static_cast<std::uint32_t>(numbers_.size());
      numbers.push_back(numbers_.emplace(group, next).first->second);
    }
    for (std::size_t i = 0; i < dump.entries.size(); ++i) add({dump.rank, i}, dump.entries[i]);
  }

  void add(Ref ref, const FlightEntry& entry) {
    const std::uint32_t group = groups_[ref.rank][entry.group];
    std::vector<Ref>& open = open_[ref.rank];
    if (!entry.completed && open.size() < kMostOpen) open.push_back(ref);
    if (entry.kind == Kind::collective) {
      std::vector<Ref>& list = collectives_[{group, entry.sequence}][ref.rank];
      places_[ref.rank].push_back(list.size());
      list.push_back(ref);
      return;
    }
    Ends& ends = channels_[{group, entry.source, entry.destination}];
    Side& side = entry.kind == Kind::send ? ends.sends : ends.receives;
    places_[ref.rank].push_back(side.posted.size());
    side.posted.push_back(ref);
    if (!entry.completed && !side.first_open) side.first_open = ref;
  }

  [[nodiscard]] const Side& other_side(Ref ref) const {
    const FlightEntry& mine = entry(ref);
    const Ends& ends = channels_.at({group(ref), mine.source, mine.destination});
    return mine.kind == Kind::send ? ends.receives : ends.sends;
  }

  // The number of an entry's group among those of all ranks.
  [[nodiscard]] std::uint32_t group(Ref ref) const {
    return groups_.at(ref.rank)[entry(ref).group];
  }
  [[nodiscard]] const FlightGroup& group_of(Ref ref) const {
    return dump(ref.rank).groups[entry(ref).group];
  }
  [[nodiscard]] const FlightDump& dump(Rank rank) const { return *by_rank_.at(rank); }
  [[nodiscard]] const FlightEntry& entry(Ref ref) const {
    return dump(ref.rank).entries[ref.index];
  }
  [[nodiscard]] static Rank peer_of(const FlightEntry& entry) {
    return entry.kind == Kind::send ? entry.destination : entry.source;
  }
  [[nodiscard]] std::size_t place(Ref ref) const { return places_.at(ref.rank)[ref.index]; }

  void add(Finding::Kind kind, std::optional<Rank> culprit, std::string op, std::string reason) {
    result_.findings.push_back({kind, culprit, std::move(op), std::move(reason)});
  }

  // What an entry is called in words.
  [[nodiscard]] std::string called(Ref ref) const {
    const FlightEntry& what = entry(ref);
    if (what.communicator && !what.frame.empty()) return what.frame;
    if (what.kind == Kind::collective) {
      return fmt::format("{} {} of group '{}'", what.name, what.sequence, group_of(ref).name);
    }
    return fmt::format("{} {} from rank {} to rank {}", what.name, place(ref), what.source,
                       what.destination);
  }

  // ---- What the run itself said ---------------------------------------------------------------

  // Ranks of different processes may each have seen something else: what most of them say.
  void what_the_run_said() {
    std::map<std::optional<Rank>, std::size_t> votes;
    for (const FlightDump& each : dumps_) {
      if (each.notes) ++votes[each.notes->culprit];
    }
    if (votes.empty()) return;
    const auto most = std::ranges::max_element(
        votes, {}, [](const auto& vote) { return std::pair(vote.first.has_value(), vote.second); });
    for (const FlightDump& each : dumps_) {
      if (!each.notes || each.notes->culprit != most->first) continue;
      const FlightNotes& notes = *each.notes;
      add(Finding::Kind::recorded, notes.culprit,
          notes.culprit == notes.failed_rank ? notes.failed_op : std::string(),
          fmt::format("at {} of rank {}: {}", notes.failed_op, notes.failed_rank, notes.reason));
      return;
    }
  }

  // ---- What does not agree --------------------------------------------------------------------

  // Of records that a Program's own executor did not make.
  void compare_orders() {
    if (!expected_) return;
    for (const FlightDump& each : dumps_) {
      if (each.notes || !each.from_the_beginning) continue;
      compare_order(each);
    }
  }

  void compare_order(const FlightDump& of) {
    struct Expected {
      std::vector<bool> sends;
      std::size_t seen = 0;
    };
    std::map<Rank, Expected> by_peer;
    for (std::size_t i = 0; i < of.entries.size(); ++i) {
      const FlightEntry& each = of.entries[i];
      if (each.kind == Kind::collective) continue;
      const Rank peer = peer_of(each);
      const auto [found, is_new] = by_peer.try_emplace(peer);
      Expected& expected = found->second;
      if (is_new) expected.sends = expected_->directions(of.rank, peer);
      const bool sends = each.kind == Kind::send;
      const std::size_t n = expected.seen++;
      if (!expected.sends.empty() && expected.sends[n % expected.sends.size()] == sends) continue;
      return add(Finding::Kind::order_differs, of.rank, called({of.rank, i}),
                 fmt::format("message {} of rank {} with rank {} is a {}, and the program has {} "
                             "there",
                             n, of.rank, peer, sends ? "send" : "receive",
                             expected.sends.empty() ? "none"
                             : sends                ? "a receive"
                                                    : "a send"));
    }
  }

  // The earliest message whose ends do not agree: what follows may only follow from it.
  void compare_messages() {
    std::optional<std::pair<Ref, Ref>> first;
    for (const auto& [channel, ends] : channels_) {
      if (!whole(std::get<1>(channel)) || !whole(std::get<2>(channel))) continue;
      const std::vector<Ref>& sends = ends.sends.posted;
      const std::vector<Ref>& receives = ends.receives.posted;
      const std::size_t both = std::min(sends.size(), receives.size());
      for (std::size_t k = 0; k < both; ++k) {
        const FlightEntry& send = entry(sends[k]);
        const FlightEntry& receive = entry(receives[k]);
        if (fits(send, receive)) continue;
        if (!first || send.created_ns < entry(first->first).created_ns) {
          first = {sends[k], receives[k]};
        }
        break;
      }
    }
    if (!first) return;
    const FlightEntry& send = entry(first->first);
    const FlightEntry& receive = entry(first->second);
    add(Finding::Kind::differs, who_deviates(first->first, first->second), called(first->first),
        fmt::format("message {} from rank {} to rank {} leaves as {} of {} and is received as {} "
                    "of {}",
                    place(first->first), send.source, send.destination, send.sizes, send.types,
                    receive.sizes, receive.types));
  }

  [[nodiscard]] bool whole(Rank rank) const {
    const auto found = by_rank_.find(rank);
    return found != by_rank_.end() && found->second->from_the_beginning;
  }

  // Of two ends the one whose size is not the Program's.
  [[nodiscard]] std::optional<Rank> who_deviates(Ref send, Ref receive) const {
    if (!expected_) return std::nullopt;
    const auto deviates = [&](Ref ref, bool sends) {
      const auto found = expected_->place(ref.rank, entry(ref), sends, place(ref));
      if (!found || entry(ref).bytes < 0) return false;
      const RankProgram& rank = expected_->program().ranks[static_cast<std::size_t>(ref.rank)];
      return rank.transfers[found->transfer].size.value != entry(ref).bytes;
    };
    const bool at_send = deviates(send, true);
    const bool at_receive = deviates(receive, false);
    if (at_send == at_receive) return std::nullopt;
    return at_send ? send.rank : receive.rank;
  }

  void compare_collectives() {
    std::optional<Ref> first;
    for (const auto& [key, ranks] : collectives_) {
      for (const auto& [rank, refs] : ranks) {
        const Ref theirs = ranks.begin()->second.front();
        const bool same = agree(entry(refs.front()), entry(theirs));
        if (!same && (!first || entry(theirs).created_ns < entry(*first).created_ns)) {
          first = theirs;
        }
      }
    }
    if (first) add_difference(collectives_.at({group(*first), entry(*first).sequence}));
  }

  [[nodiscard]] static bool agree(const FlightEntry& a, const FlightEntry& b) {
    if (a.name != b.name || a.types != b.types) return false;
    const bool may_differ = a.name.ends_with("_v") || a.name.starts_with("all_to_all") ||
                            a.name == "gather" || a.name == "scatter" || a.name == "broadcast";
    return may_differ || a.sizes == b.sizes;
  }

  // The members that most do not agree with; of two halves none.
  void add_difference(const std::map<Rank, std::vector<Ref>>& ranks) {
    std::map<std::string, std::vector<Rank>> said;
    for (const auto& [rank, refs] : ranks) {
      const FlightEntry& each = entry(refs.front());
      said[fmt::format("{} of {} {}", each.name, each.sizes, each.types)].push_back(rank);
    }
    std::vector<std::string> parts;
    std::optional<Rank> culprit;
    for (const auto& [what, who] : said) {
      parts.push_back(fmt::format("rank{} {} call{} {}", who.size() == 1 ? "" : "s",
                                  fmt::join(who, ", "), who.size() == 1 ? "s" : "", what));
      if (2 * who.size() < ranks.size() && !culprit) culprit = who.front();
    }
    const Ref any = ranks.begin()->second.front();
    add(Finding::Kind::differs, culprit, culprit ? called(ranks.at(*culprit).front()) : called(any),
        fmt::format("number {} of group '{}' is not the same for all: {}", entry(any).sequence,
                    group_of(any).name, fmt::join(parts, "; ")));
  }

  // ---- Who waits for whom ---------------------------------------------------------------------

  void follow_who_waits() {
    std::vector<Ref> open;
    for (const auto& [rank, of_rank] : open_) {
      open.insert(open.end(), of_rank.begin(), of_rank.end());
    }
    std::ranges::stable_sort(open, {}, [&](Ref ref) { return entry(ref).created_ns; });
    for (const Ref ref : open) {
      if (std::optional<Finding> found = chain(ref)) {
        result_.findings.push_back(std::move(*found));
        return;
      }
    }
  }

  [[nodiscard]] std::optional<Finding> chain(Ref at) const {
    std::set<Ref> seen;
    for (;;) {
      if (!seen.insert(at).second) {
        return Finding{Finding::Kind::cycle, std::nullopt, called(at),
                       fmt::format("each waits for another, from {} of rank {} round to it again",
                                   called(at), at.rank)};
      }
      const Status status = status_of(at);
      if (status.kind == Status::Kind::under_way) return std::nullopt;
      if (status.kind == Status::Kind::no_record) {
        return Finding{Finding::Kind::no_record, status.rank, std::string(),
                       fmt::format("{} of rank {} waits for rank {}, which left no record",
                                   called(at), at.rank, status.rank)};
      }
      if (status.kind == Status::Kind::lost) return lost(at, status.rank);
      const std::optional<Ref> next = what_holds_back(status.rank, at);
      if (!next) return never_posted(at, status.rank);
      at = *next;
    }
  }

  [[nodiscard]] static bool fits(const FlightEntry& send, const FlightEntry& receive) {
    return send.sizes == receive.sizes && send.types == receive.types;
  }

  [[nodiscard]] Finding lost(Ref at, std::optional<Rank> culprit) const {
    const std::optional<Ref> other = counterpart(at);
    const bool ended = other && entry(*other).completed;
    // What does not fit cannot arrive: then it is not for the sender to see to it.
    if (other && !fits(entry(at), entry(*other))) {
      const bool sends = entry(at).kind == Kind::send;
      culprit = who_deviates(sends ? at : *other, sends ? *other : at);
    }
    return {Finding::Kind::does_not_arrive, culprit, other ? called(*other) : called(at),
            fmt::format("{} of rank {} does not end, though rank {} has {} its end", called(at),
                        at.rank, peer_of(entry(at)), ended ? "completed" : "posted")};
  }

  [[nodiscard]] Finding never_posted(Ref at, Rank culprit) const {
    const std::string op = awaited(at, culprit);
    std::string reason = fmt::format("{} of rank {} waits for rank {}, which has not posted {}",
                                     called(at), at.rank, culprit, op);
    const FlightDump& there = dump(culprit);
    if (there.notes && !there.notes->running.empty()) {
      reason += fmt::format(": it runs {}", fmt::join(there.notes->running, ", "));
    } else if (!there.entries.empty()) {
      const Ref last{culprit, there.entries.size() - 1};
      reason += fmt::format(": its last is {}, which {}", called(last),
                            entry(last).completed ? "has completed" : "has not completed");
    }
    return {Finding::Kind::never_posted, culprit, op, std::move(reason)};
  }

  // What `rank` should have posted for it: as its record, or the Program, calls it.
  [[nodiscard]] std::string awaited(Ref at, Rank rank) const {
    const FlightEntry& waiting = entry(at);
    if (waiting.kind == Kind::collective) return called(at);
    const bool sends = waiting.kind == Kind::receive;
    if (const auto& notes = dump(rank).notes) {
      for (const FlightEntry& each : notes->not_begun) {
        const bool same = groups_.at(rank)[each.group] == group(at);
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
    const FlightEntry& waiting = entry(at);
    if (!expected_ || waiting.kind == Kind::collective) return std::nullopt;
    const auto found = expected_->place(
        rank, waiting, (waiting.kind == Kind::send) == (rank == at.rank), place(at));
    return found ? std::optional(found->instruction) : std::nullopt;
  }

  // Of the open entries of a rank, the first that keeps it from posting what `at` waits for.
  [[nodiscard]] std::optional<Ref> what_holds_back(Rank rank, Ref at) const {
    const FlightDump& there = dump(rank);
    const std::optional<std::uint32_t> wanted = in_program(at, rank);
    if (!wanted && there.notes && !there.notes->running.empty()) return std::nullopt;
    const auto found = open_.find(rank);
    if (found == open_.end()) return std::nullopt;
    for (const Ref each : found->second) {
      if (status_of(each).kind == Status::Kind::under_way) continue;
      const std::optional<std::uint32_t> open = in_program(each, rank);
      if (wanted && open && !expected_->holds_back(rank, *open, *wanted)) continue;
      return each;
    }
    return std::nullopt;
  }

  [[nodiscard]] Status status_of(Ref ref) const {
    const FlightEntry& waiting = entry(ref);
    if (waiting.kind == Kind::collective) return status_of_collective(ref);
    const Rank peer = peer_of(waiting);
    if (!by_rank_.contains(peer)) return {Status::Kind::no_record, peer};
    const std::optional<Ref> other = counterpart(ref);
    if (!other) return {Status::Kind::absent, peer};
    const bool acknowledged_late = waiting.kind == Kind::send && entry(*other).completed;
    if (acknowledged_late) return {};
    return {Status::Kind::lost, waiting.source};
  }

  [[nodiscard]] Status status_of_collective(Ref ref) const {
    const auto& ranks = collectives_.at({group(ref), entry(ref).sequence});
    const std::vector<Rank>& members = group_of(ref).members;
    for (const Rank member : members) {
      if (!by_rank_.contains(member)) return {Status::Kind::no_record, member};
    }
    for (const Rank member : members) {
      const auto found = ranks.find(member);
      if (found == ranks.end() || found->second.size() <= place(ref)) {
        return {Status::Kind::absent, member};
      }
    }
    return {};  // all are there: nobody is at fault that could be seen
  }

  [[nodiscard]] std::optional<Ref> counterpart(Ref ref) const {
    const Side& other = other_side(ref);
    if (!whole(ref.rank) || !whole(peer_of(entry(ref)))) return other.first_open;
    return place(ref) < other.posted.size() ? std::optional(other.posted[place(ref)])
                                            : std::nullopt;
  }

  const std::vector<FlightDump>& dumps_;
  std::optional<ExpectedMessages> expected_;
  std::map<Rank, const FlightDump*> by_rank_;
  std::map<Rank, std::vector<std::size_t>> places_;  // of each entry on its side of its channel
  std::map<Channel, Ends> channels_;
  std::map<std::pair<std::uint32_t, std::int64_t>, std::map<Rank, std::vector<Ref>>> collectives_;
  std::map<FlightGroup, std::uint32_t> numbers_;
  std::map<Rank, std::vector<std::uint32_t>> groups_;  // the numbers of each rank's groups
  std::map<Rank, std::vector<Ref>> open_;              // what has not completed, as posted
  std::set<Rank> known_;
  Diagnosis result_;
};

void check_program(const std::vector<FlightDump>& dumps, const Program& program) {
  const std::string hashed = fmt::format("{:016x}", hash(program));
  for (const FlightDump& dump : dumps) {
    const auto size = static_cast<Rank>(program.ranks.size());
    const Rank most =
        dump.known_ranks.empty() ? dump.rank : std::max(dump.rank, dump.known_ranks.back());
    if (most >= size) {
      throw InputError({dump.file, 0, 0},
                       fmt::format("it names rank {}, and the program has ranks 0 to {}; give the "
                                   "program that ran",
                                   most, size - 1));
    }
    if (dump.notes && dump.notes->program_hash != hashed) {
      throw InputError({dump.file, 0, 0},
                       fmt::format("it is a record of program {}, and the one given is {}; give "
                                   "the program that ran",
                                   dump.notes->program_hash, hashed));
    }
  }
}

}  // namespace

std::string_view name(Finding::Kind kind) {
  switch (kind) {
    case Finding::Kind::recorded:
      return "recorded";
    case Finding::Kind::order_differs:
      return "order_differs";
    case Finding::Kind::differs:
      return "differs";
    case Finding::Kind::does_not_arrive:
      return "does_not_arrive";
    case Finding::Kind::never_posted:
      return "never_posted";
    case Finding::Kind::cycle:
      return "cycle";
    case Finding::Kind::no_record:
      return "no_record";
  }
  return "";
}

const Finding* Diagnosis::verdict() const {
  const auto certain =
      std::ranges::find_if(findings, [](const Finding& each) { return each.culprit.has_value(); });
  if (certain != findings.end()) return &*certain;
  return findings.empty() ? nullptr : &findings.front();
}

std::string Diagnosis::op() const {
  const Finding* found = verdict();
  if (found == nullptr) return {};
  const auto named = std::ranges::find_if(findings, [&](const Finding& each) {
    return each.culprit == found->culprit && !each.op.empty();
  });
  return named == findings.end() ? std::string() : named->op;
}

Diagnosis diagnose(const std::vector<FlightDump>& dumps, const Program* program) {
  if (program != nullptr) check_program(dumps, *program);
  return Analyst(dumps, program).run();
}

std::string to_text(const Diagnosis& diagnosis) {
  const std::string records = fmt::format(
      "records of rank{} {}{}\n", diagnosis.ranks.size() == 1 ? "" : "s",
      fmt::join(diagnosis.ranks, ", "),
      diagnosis.missing.empty() ? std::string()
                                : fmt::format("; none of {}", fmt::join(diagnosis.missing, ", ")));
  const Finding* verdict = diagnosis.verdict();
  if (verdict == nullptr) return "nothing is wrong that these records show\n" + records;
  std::string text = verdict->culprit ? fmt::format("rank {} is at fault", *verdict->culprit)
                                      : std::string("no single rank is at fault");
  if (const std::string op = diagnosis.op(); !op.empty()) text += fmt::format(", at {}", op);
  text += '\n';
  for (const Finding& each : diagnosis.findings) {
    text += fmt::format("  {}: {}\n", name(each.kind), each.reason);
  }
  return text + records;
}

std::string to_json(const Diagnosis& diagnosis) {
  std::string out;
  json::Object object(out, ",\n ");
  object.add("schema_version", std::int64_t{kSchemaVersion});
  const Finding* verdict = diagnosis.verdict();
  if (verdict != nullptr) {
    if (verdict->culprit) object.add("culprit", std::int64_t{*verdict->culprit});
    object.add("op", diagnosis.op());
    object.add("reason", verdict->reason);
  }
  for (const auto& [key, ranks] :
       {std::pair("ranks", &diagnosis.ranks), std::pair("missing_ranks", &diagnosis.missing)}) {
    json::Array list(object.member(key));
    for (const Rank rank : *ranks) list.add(std::int64_t{rank});
    list.close();
  }
  json::Array findings(object.member("findings"), ",\n  ");
  for (const Finding& each : diagnosis.findings) {
    json::Object one(findings.element());
    one.add("kind", name(each.kind));
    if (each.culprit) one.add("culprit", std::int64_t{*each.culprit});
    one.add("op", each.op);
    one.add("reason", each.reason);
    one.close();
  }
  findings.close();
  object.close();
  return out + "\n";
}

}  // namespace counterflow
