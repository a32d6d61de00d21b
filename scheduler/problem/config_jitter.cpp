#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numbers>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "scheduler/problem/config_sections.h"
#include "scheduler/problem/yaml_tree.h"

namespace counterflow {
namespace {

constexpr FactorRange kSigma = {0, 1, "sigma is a share of the cost from 0 to 1", "0.05"};
// Beyond it factors would fall below 0, where they would have to be cut, and so raise the mean.
constexpr FactorRange kUniformSigma = {
    0, std::numbers::inv_sqrt3,
    "sigma of uniform is from 0 to 0.577, since factors reach from 1 - 1.732 sigma", "0.05"};
constexpr FactorRange kSlow = {1e-3, 1e3, "a factor of the time is from 0.001 to 1000", "1.2"};
constexpr FactorRange kProbability = {0, 1, "a probability is from 0 to 1", "0.01"};

Distribution read_distribution(const Cursor& at) {
  const std::vector<std::pair<std::string_view, Distribution>> known = {
      {"normal", Distribution::normal},
      {"lognormal", Distribution::lognormal},
      {"uniform", Distribution::uniform},
      {"exponential", Distribution::exponential}};
  std::vector<std::string_view> names;
  for (const auto& [name, value] : known) names.push_back(name);
  const std::string_view chosen = at.choice(names);
  return std::ranges::find(known, chosen, &std::pair<std::string_view, Distribution>::first)
      ->second;
}

// sigma alone, or {distribution: .., sigma: ..}.
Spread read_spread(const Cursor& at) {
  Spread spread;
  if (!at.is_map()) {
    spread.sigma = at.factor(kSigma);
    return spread;
  }
  at.allow_keys({"distribution", "sigma"});
  if (const auto c = at.find("distribution")) spread.distribution = read_distribution(*c);
  const bool uniform = spread.distribution == Distribution::uniform;
  spread.sigma = at.at("sigma", "0.05").factor(uniform ? kUniformSigma : kSigma);
  return spread;
}

// What `ranks` and `links` entries share.
template <typename Entry>
void read_own(const Cursor& at, Entry& entry) {
  const auto slow = at.find("slow");
  const auto spread = at.find("jitter");
  if (!slow && !spread) at.fail("says nothing; give slow, jitter or both, for example slow: 1.2");
  if (slow) entry.slow = slow->factor(kSlow);
  if (spread) entry.spread = read_spread(*spread);
}

Jitter::OfRank read_rank(const Cursor& at, int ranks, std::set<Rank>& seen) {
  at.allow_keys({"rank", "slow", "jitter"});
  Jitter::OfRank entry;
  const Cursor rank = at.at("rank", "0");
  entry.rank = rank.small_integer(0, ranks - 1);
  if (!seen.insert(entry.rank).second) {
    rank.fail(fmt::format("rank {} is given twice; remove one", entry.rank));
  }
  read_own(at, entry);
  return entry;
}

Jitter::OfLink read_link(const Cursor& at, int ranks, std::set<std::pair<Rank, Rank>>& seen) {
  at.allow_keys({"link", "slow", "jitter"});
  const Cursor link = at.at("link", "[0, 1]");
  Jitter::OfLink entry;
  std::tie(entry.from, entry.to) = read_rank_pair(link, ranks);
  if (!seen.emplace(entry.from, entry.to).second) {
    link.fail(fmt::format("the link {}, {} is given twice; remove one", entry.from, entry.to));
  }
  read_own(at, entry);
  return entry;
}

Jitter::Stragglers read_stragglers(const Cursor& at) {
  at.allow_keys({"probability", "slow"});
  Jitter::Stragglers stragglers;
  stragglers.probability = at.at("probability", "0.01").factor(kProbability);
  stragglers.slow = at.at("slow", "1.5").factor(kSlow);
  return stragglers;
}

}  // namespace

void read_jitter(const Cursor& at, Config& config) {
  at.allow_keys({"seed", "compute", "forward", "backward", "backward_input", "backward_weight",
                 "transfer", "ranks", "links", "stragglers"});
  const int ranks = config.all_ranks();
  Jitter jitter;
  if (const auto c = at.find("seed")) {
    jitter.seed =
        static_cast<std::uint64_t>(c->integer(0, std::numeric_limits<std::int64_t>::max()));
  }
  if (const auto c = at.find("compute")) jitter.compute = read_spread(*c);
  for (const auto& [key, kind] : {std::pair{"forward", OpKind::forward},
                                  {"backward", OpKind::backward},
                                  {"backward_input", OpKind::backward_input},
                                  {"backward_weight", OpKind::backward_weight}}) {
    if (const auto c = at.find(key)) jitter.kinds.emplace_back(kind, read_spread(*c));
  }
  if (const auto c = at.find("transfer")) jitter.transfer = read_spread(*c);
  std::set<Rank> seen_ranks;
  if (const auto c = at.find("ranks")) {
    jitter.ranks = c->list_of("entries {rank, slow, jitter}", [&](const Cursor& each) {
      return read_rank(each, ranks, seen_ranks);
    });
  }
  std::set<std::pair<Rank, Rank>> seen_links;
  if (const auto c = at.find("links")) {
    jitter.links = c->list_of("entries {link, slow, jitter}", [&](const Cursor& each) {
      return read_link(each, ranks, seen_links);
    });
  }
  if (const auto c = at.find("stragglers")) jitter.stragglers = read_stragglers(*c);
  config.jitter = std::move(jitter);
}

Jitter parse_jitter(std::string_view yaml, const std::string& file, int ranks) {
  Config config;
  config.ranks.value = ranks;
  read_jitter(Cursor(yaml::parse(yaml, file), "jitter"), config);
  return *config.jitter;
}

}  // namespace counterflow
