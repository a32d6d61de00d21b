#include "scheduler/problem/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace counterflow {
namespace {

std::size_t index(int i) {
  return static_cast<std::size_t>(i);
}

// The position of each rank among the ranks of its node.
std::vector<int> local_indices(const std::vector<int>& node_of) {
  std::map<int, int> seen;
  std::vector<int> local;
  local.reserve(node_of.size());
  for (const int node : node_of) local.push_back(seen[node]++);
  return local;
}

}  // namespace

Topology::Topology(const std::optional<Machine>& machine, std::vector<NamedLink> named) {
  if (machine) build(*machine);
  for (NamedLink& link : named) {
    const auto id = static_cast<SharedLinkId>(links_.size());
    for (const auto& [from, to] : link.pairs) named_.push_back({key(from, to), id, link.latency});
    links_.push_back({std::move(link.name), link.bandwidth});
  }
  std::ranges::stable_sort(named_, {}, &Crossing::pair);
}

Topology::Pair Topology::add_pair(const Machine::Tier& tier, const std::string& name,
                                  std::string_view out, std::string_view in) {
  if (!tier.bandwidth) return {};
  const auto first = static_cast<SharedLinkId>(links_.size());
  links_.push_back({fmt::format("{} {}", name, out), *tier.bandwidth});
  links_.push_back({fmt::format("{} {}", name, in), *tier.bandwidth});
  return {first, first + 1};
}

void Topology::build(const Machine& machine) {
  node_of_ = machine.node_of;
  rails_ = machine.rails;
  node_latency_ = machine.node.latency;
  nic_latency_ = machine.nic.latency;
  spine_latency_ = machine.spine.latency;
  const std::vector<int> local = local_indices(node_of_);
  std::map<std::pair<int, int>, Pair> nics;  // (node, NIC)
  for (std::size_t rank = 0; rank < node_of_.size(); ++rank) {
    const int nic = machine.nics_per_node > 0 ? local[rank] % machine.nics_per_node : local[rank];
    nic_of_.push_back(nic);
    ports_.push_back(add_pair(machine.node, fmt::format("rank {}", rank), "out", "in"));
    const auto [place, is_new] = nics.try_emplace({node_of_[rank], nic});
    if (is_new) {
      place->second =
          add_pair(machine.nic, fmt::format("node {} nic {}", node_of_[rank], nic), "out", "in");
    }
    nics_.push_back(place->second);
  }
  if (node_of_.empty()) return;
  const int uplinks = std::ranges::max(rails_ ? nic_of_ : node_of_) + 1;
  for (int i = 0; i < uplinks; ++i) {
    uplinks_.push_back(
        add_pair(machine.spine, fmt::format("{} {}", rails_ ? "rail" : "node", i), "up", "down"));
  }
}

bool Topology::same_node(Rank from, Rank to) const {
  return node_of_[index(from)] == node_of_[index(to)];
}

bool Topology::meets_below_spine(Rank from, Rank to) const {
  return rails_ && nic_of_[index(from)] == nic_of_[index(to)];
}

template <typename Each>
void Topology::for_named(Rank from, Rank to, Each each) const {
  const std::uint64_t pair = key(from, to);
  auto crossing = std::ranges::lower_bound(named_, pair, {}, &Crossing::pair);
  for (; crossing != named_.end() && crossing->pair == pair; ++crossing) each(*crossing);
}

std::vector<SharedLinkId> Topology::route(Rank from, Rank to) const {
  std::vector<SharedLinkId> route;
  if (from == to) return route;
  const auto cross = [&](SharedLinkId link) {
    if (link != kUnlimited) route.push_back(link);
  };
  if (!node_of_.empty() && same_node(from, to)) {
    cross(ports_[index(from)].out);
    cross(ports_[index(to)].in);
  } else if (!node_of_.empty()) {
    const std::vector<int>& group = rails_ ? nic_of_ : node_of_;
    cross(nics_[index(from)].out);
    if (!meets_below_spine(from, to)) {
      cross(uplinks_[index(group[index(from)])].out);
      cross(uplinks_[index(group[index(to)])].in);
    }
    cross(nics_[index(to)].in);
  }
  for_named(from, to, [&](const Crossing& crossing) { route.push_back(crossing.link); });
  return route;
}

Time Topology::latency(Rank from, Rank to) const {
  Time sum{0};
  if (from == to) return sum;
  if (!node_of_.empty()) {
    if (same_node(from, to)) {
      sum = node_latency_;
    } else {
      sum = nic_latency_ + (meets_below_spine(from, to) ? Time{0} : spine_latency_);
    }
  }
  for_named(from, to, [&](const Crossing& crossing) { sum += crossing.latency; });
  return sum;
}

std::optional<double> Topology::bandwidth(Rank from, Rank to) const {
  std::optional<double> least;
  for (const SharedLinkId link : route(from, to)) {
    least = std::min(least.value_or(links_[link].bandwidth), links_[link].bandwidth);
  }
  return least;
}

std::optional<SharedLinkId> Topology::find(std::string_view name) const {
  const auto found = std::ranges::find(links_, name, &SharedLink::name);
  if (found == links_.end()) return std::nullopt;
  return static_cast<SharedLinkId>(found - links_.begin());
}

Time Topology::longest_latency() const {
  Time sum = std::max(node_latency_, nic_latency_ + spine_latency_);
  for (const Crossing& crossing : named_) sum += crossing.latency;
  return sum;
}

std::optional<double> Topology::least_bandwidth() const {
  if (links_.empty()) return std::nullopt;
  return std::ranges::min(links_, {}, &SharedLink::bandwidth).bandwidth;
}

}  // namespace counterflow
