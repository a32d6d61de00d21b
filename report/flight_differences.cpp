#include "report/flight_differences.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace counterflow {
namespace {

using Kind = FlightEntry::Kind;
using Ref = FlightMatches::Ref;

class Comparison {
 public:
  Comparison(const FlightMatches& matches, const ExpectedMessages* expected)
      : matches_(matches), expected_(expected) {}

  std::vector<Finding> findings() {
    compare_orders();
    compare_messages();
    compare_collectives();
    return std::move(findings_);
  }

 private:
  void add(Finding::Kind kind, std::optional<Rank> culprit, std::string op, std::string reason) {
    findings_.push_back({kind, culprit, std::move(op), std::move(reason)});
  }

  // Of records that a Program's own executor did not make.
  void compare_orders() {
    if (expected_ == nullptr) return;
    for (const FlightDump& each : matches_.dumps()) {
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
      return add(Finding::Kind::order_differs, of.rank, matches_.called({of.rank, i}),
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
    for (const auto& [channel, ends] : matches_.channels()) {
      if (!matches_.whole(std::get<1>(channel)) || !matches_.whole(std::get<2>(channel))) continue;
      const std::vector<Ref>& sends = ends.sends.posted;
      const std::vector<Ref>& receives = ends.receives.posted;
      const std::size_t both = std::min(sends.size(), receives.size());
      for (std::size_t k = 0; k < both; ++k) {
        const FlightEntry& send = matches_.entry(sends[k]);
        const FlightEntry& receive = matches_.entry(receives[k]);
        if (fits(send, receive)) continue;
        if (!first || send.created_ns < matches_.entry(first->first).created_ns) {
          first = {sends[k], receives[k]};
        }
        break;
      }
    }
    if (!first) return;
    const FlightEntry& send = matches_.entry(first->first);
    const FlightEntry& receive = matches_.entry(first->second);
    add(Finding::Kind::differs, who_deviates(matches_, expected_, first->first, first->second),
        matches_.called(first->first),
        fmt::format("message {} from rank {} to rank {} leaves as {} of {} and is received as {} "
                    "of {}",
                    matches_.place(first->first), send.source, send.destination, send.sizes,
                    send.types, receive.sizes, receive.types));
  }

  void compare_collectives() {
    std::optional<Ref> first;
    for (const auto& [key, ranks] : matches_.collectives()) {
      for (const auto& [rank, refs] : ranks) {
        const Ref theirs = ranks.begin()->second.front();
        const bool same = agree(matches_.entry(refs.front()), matches_.entry(theirs));
        if (!same &&
            (!first || matches_.entry(theirs).created_ns < matches_.entry(*first).created_ns)) {
          first = theirs;
        }
      }
    }
    if (first) add_difference(matches_.calls(*first));
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
      const FlightEntry& each = matches_.entry(refs.front());
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
    add(Finding::Kind::differs, culprit,
        culprit ? matches_.called(ranks.at(*culprit).front()) : matches_.called(any),
        fmt::format("number {} of group '{}' is not the same for all: {}",
                    matches_.entry(any).sequence, matches_.group_of(any).name,
                    fmt::join(parts, "; ")));
  }

  const FlightMatches& matches_;
  const ExpectedMessages* expected_;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> differences(const FlightMatches& matches, const ExpectedMessages* expected) {
  return Comparison(matches, expected).findings();
}

std::optional<Rank> who_deviates(const FlightMatches& matches, const ExpectedMessages* expected,
                                 FlightMatches::Ref send, FlightMatches::Ref receive) {
  if (expected == nullptr) return std::nullopt;
  const auto deviates = [&](FlightMatches::Ref ref, bool sends) {
    const auto found = expected->place(ref.rank, matches.entry(ref), sends, matches.place(ref));
    if (!found || matches.entry(ref).bytes < 0) return false;
    const RankProgram& rank = expected->program().ranks[static_cast<std::size_t>(ref.rank)];
    return rank.transfers[found->transfer].size.value != matches.entry(ref).bytes;
  };
  const bool at_send = deviates(send, true);
  const bool at_receive = deviates(receive, false);
  if (at_send == at_receive) return std::nullopt;
  return at_send ? send.rank : receive.rank;
}

}  // namespace counterflow
