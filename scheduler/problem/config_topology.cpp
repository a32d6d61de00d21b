#include <fmt/format.h>

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/ir/op.h"
#include "scheduler/problem/config_sections.h"
#include "scheduler/problem/text.h"

namespace counterflow {
namespace {

Machine::Tier read_tier(const Cursor& at) {
  at.allow_keys({"bandwidth", "latency"});
  Machine::Tier tier;
  if (const auto c = at.find("bandwidth")) tier.bandwidth = c->rate();
  if (const auto c = at.find("latency")) tier.latency = c->duration();
  if (!tier.bandwidth && tier.latency == Time{0}) {
    at.fail("says nothing; give bandwidth, latency or both, for example {bandwidth: 50GB/s}");
  }
  return tier;
}

std::vector<int> equal_nodes(const Cursor& at, int ranks) {
  const int size = at.small_integer(1, kMaxStages);
  std::vector<int> nodes;
  for (int rank = 0; rank < ranks; ++rank) nodes.push_back(rank / size);
  return nodes;
}

std::vector<int> listed_nodes(const Cursor& at, int ranks) {
  auto nodes = at.list_of("nodes, one a rank",
                          [&](const Cursor& c) { return c.small_integer(0, ranks - 1); });
  if (nodes.size() != static_cast<std::size_t>(ranks)) {
    at.fail(fmt::format("a list of {} for {} ranks; give the node of each rank, for example 0",
                        nodes.size(), ranks));
  }
  return nodes;
}

// Nodes, NICs and rails, if the config speaks of them.
std::optional<Machine> read_machine(const Cursor& at, int ranks) {
  const auto size = at.find("ranks_per_node");
  const auto nodes = at.find("nodes");
  if (size && nodes) {
    nodes->fail("given beside topology.ranks_per_node, which already says it; keep one of them");
  }
  if (!size && !nodes) {
    for (const char* key : {"nics_per_node", "rails", "node", "nic", "spine"}) {
      if (const auto c = at.find(key)) {
        c->fail("given without nodes; add topology.ranks_per_node, for example 8");
      }
    }
    return std::nullopt;
  }
  Machine machine;
  machine.node_of = size ? equal_nodes(*size, ranks) : listed_nodes(*nodes, ranks);
  if (const auto c = at.find("nics_per_node")) {
    machine.nics_per_node = c->small_integer(1, kMaxStages);
  }
  if (const auto c = at.find("rails")) machine.rails = c->boolean();
  if (const auto c = at.find("node")) machine.node = read_tier(*c);
  if (const auto c = at.find("nic")) machine.nic = read_tier(*c);
  if (const auto c = at.find("spine")) machine.spine = read_tier(*c);
  return machine;
}

using RankPair = std::pair<Rank, Rank>;

RankPair read_pair(const Cursor& at, int ranks, std::set<RankPair>& seen) {
  const RankPair pair = read_rank_pair(at, ranks);
  if (!seen.insert(pair).second) {
    at.fail(fmt::format("the pair {}, {} is given twice; remove one", pair.first, pair.second));
  }
  return pair;
}

// `machine` holds the links that nodes and NICs make.
NamedLink read_named(const Cursor& at, int ranks, const Topology& machine,
                     std::set<std::string>& names) {
  at.allow_keys({"name", "bandwidth", "latency", "pairs"});
  NamedLink link;
  const Cursor name = at.at("name", "ib0");
  link.name = name.text("a name");
  if (!names.insert(link.name).second) {
    name.fail(fmt::format("{} is given to two links; rename one", shown(link.name)));
  }
  if (machine.find(link.name)) {
    name.fail(
        fmt::format("{} is a link that the nodes have already; write another name, for "
                    "example ib0",
                    shown(link.name)));
  }
  link.bandwidth = at.at("bandwidth", "50GB/s").rate();
  if (const auto c = at.find("latency")) link.latency = c->duration();
  std::set<RankPair> seen;
  link.pairs = at.at("pairs", "[[0, 1], [1, 0]]")
                   .list_of("pairs [from rank, to rank]",
                            [&](const Cursor& c) { return read_pair(c, ranks, seen); });
  return link;
}

}  // namespace

void read_topology(const Cursor& at, Config& config) {
  at.allow_keys(
      {"ranks_per_node", "nodes", "nics_per_node", "rails", "node", "nic", "spine", "links"});
  const int ranks = config.all_ranks();
  if (config.links.has_bandwidth()) {
    at.fail(
        "given beside links.bandwidth, which gives every pair of ranks a link of its own; remove "
        "links.bandwidth");
  }
  if (!config.message) {
    at.fail("given without links.message, the size it carries; add for example message: 56MiB");
  }
  const std::optional<Machine> machine = read_machine(at, ranks);
  std::vector<NamedLink> named;
  std::set<std::string> names;
  if (const auto c = at.find("links")) {
    const Topology built(machine, {});
    named = c->list_of("links {name, bandwidth, pairs}",
                       [&](const Cursor& each) { return read_named(each, ranks, built, names); });
  }
  if (!machine && named.empty()) {
    at.fail("says nothing; give ranks_per_node with node and nic, or links");
  }
  config.links = config.links.with(Topology(machine, std::move(named)));
}

}  // namespace counterflow
