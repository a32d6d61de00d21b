#include <fmt/format.h>

#include <cstddef>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "scheduler/problem/config_sections.h"

namespace counterflow {
namespace {

using RankPair = std::pair<std::size_t, std::size_t>;

// Latencies by rank pair, [from * ranks + to].
std::vector<Time> latency_table(int ranks, Time fill) {
  const auto p = static_cast<std::size_t>(ranks);
  return std::vector<Time>(p * p, fill);
}

void check_table(const Cursor& at, int ranks) {
  if (ranks <= kMaxTableRanks) return;
  at.fail(
      fmt::format("a table by rank pair takes at most {} ranks, not {}; give one latency for all",
                  kMaxTableRanks, ranks));
}

Links read_latency_matrix(const Cursor& at, int ranks, double bandwidth) {
  const auto p = static_cast<std::size_t>(ranks);
  std::vector<Time> table = latency_table(ranks, Time{0});
  const auto rows = at.tuple(p, fmt::format("a table of {0} rows of {0} ranks", ranks));
  for (std::size_t from = 0; from < p; ++from) {
    const auto row = rows[from].tuple(p, fmt::format("a row of {} ranks", ranks));
    for (std::size_t to = 0; to < p; ++to) {
      const Time latency = row[to].duration();
      if (from == to && latency != Time{0}) row[to].fail("a hop inside a rank is free; write 0");
      table[from * p + to] = latency;
    }
  }
  return {ranks, std::move(table), bandwidth};
}

struct LinkLatency {
  std::size_t from;
  std::size_t to;
  Time latency;
};

LinkLatency read_link(const Cursor& at, int ranks, std::set<RankPair>& seen) {
  const auto entry = at.tuple(3, "an entry [rank, rank, latency]");
  const auto rank = [&](const Cursor& c) {
    return static_cast<std::size_t>(c.integer(0, ranks - 1));
  };
  const LinkLatency link{rank(entry[0]), rank(entry[1]), entry[2].duration()};
  if (link.from == link.to) at.fail("a hop inside a rank is free; name two ranks");
  if (!seen.emplace(link.from, link.to).second) {
    at.fail(fmt::format("the ranks {}, {} are given twice; remove one", link.from, link.to));
  }
  return link;
}

Links read_latency_pairs(const Cursor& at, int ranks, double bandwidth) {
  at.allow_keys({"default", "pairs"});
  const auto rest = at.find("default");
  const Time fill = rest ? rest->duration() : Time{0};
  const auto p = static_cast<std::size_t>(ranks);
  std::vector<Time> table = latency_table(ranks, fill);
  std::set<RankPair> seen;
  const auto links = at.at("pairs", "[[0, 1, 5us]]")
                         .list_of("entries [rank, rank, latency]",
                                  [&](const Cursor& c) { return read_link(c, ranks, seen); });
  for (const LinkLatency& link : links) {
    table[link.from * p + link.to] = link.latency;
    if (seen.count({link.to, link.from}) == 0) table[link.to * p + link.from] = link.latency;
  }
  return {ranks, std::move(table), bandwidth};
}

DataType read_packing(const Cursor& at) {
  return at.choice({"bf16", "fp8"}) == "fp8" ? DataType::fp8 : DataType::bf16;
}

Compression read_compression(const Cursor& at) {
  Compression compression;
  if (!at.is_map()) {
    compression.activations = compression.gradients = read_packing(at);
    return compression;
  }
  at.allow_keys({"activations", "gradients", "rate"});
  if (const auto c = at.find("activations")) compression.activations = read_packing(*c);
  if (const auto c = at.find("gradients")) compression.gradients = read_packing(*c);
  if (!compression.any()) at.fail("compresses nothing; add for example activations: fp8");
  if (const auto c = at.find("rate")) compression.rate = c->rate();
  return compression;
}

// The size that must be there for `key`, if nothing says it.
void need_message(const std::optional<Cursor>& key, bool has_message) {
  if (key && !has_message) {
    key->fail("given without links.message, the size it carries; add for example message: 56MiB");
  }
}

// One latency for all links, or a table.
Links links_of(const std::optional<Cursor>& latency, const Config& config, double bandwidth) {
  if (!latency) return Links(Time{0}, bandwidth);
  if (!latency->is_list() && !latency->is_map()) return Links(latency->duration(), bandwidth);
  check_table(*latency, config.all_ranks());
  return latency->is_list() ? read_latency_matrix(*latency, config.ranks.value, bandwidth)
                            : read_latency_pairs(*latency, config.ranks.value, bandwidth);
}

}  // namespace

std::pair<Rank, Rank> read_rank_pair(const Cursor& at, int ranks) {
  const auto ends = at.tuple(2, "a pair [from rank, to rank]");
  const std::pair<Rank, Rank> pair{ends[0].small_integer(0, ranks - 1),
                                   ends[1].small_integer(0, ranks - 1)};
  if (pair.first == pair.second) at.fail("a hop inside a rank crosses no link; name two ranks");
  return pair;
}

void read_links(const Cursor& at, Config& config) {
  at.allow_keys({"latency", "bandwidth", "message", "compress"});
  const auto rate = at.find("bandwidth");
  const auto message = at.find("message");
  const double bandwidth = rate ? rate->rate() : 0;
  if (message) config.message = message->per_item([](const Cursor& c) { return c.size(); });
  const bool layers_say = config.layers && config.layers->has_message;
  if (message && layers_say)
    message->fail("given beside the layers' own message; keep one of them");
  if (message && config.layers && config.message->is_list) {
    message->fail("a list beside layers; give one size for all, or each layer its message");
  }
  need_message(rate, message || layers_say);
  const auto compress = at.find("compress");
  need_message(compress, message || layers_say);
  if (compress) config.compression = compress->located(read_compression);
  config.links = links_of(at.find("latency"), config, bandwidth);
}

}  // namespace counterflow
