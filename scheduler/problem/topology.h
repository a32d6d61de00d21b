#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scheduler/ir/units.h"

namespace counterflow {

// One direction of something that several messages may use at once: a port, a NIC, an uplink.
struct SharedLink {
  std::string name;      // "rank 3 out", "node 0 nic 2 in", or as the config calls it
  double bandwidth = 0;  // bytes a second, above zero
};
using SharedLinkId = std::uint32_t;

// Ranks in nodes, nodes behind NICs, NICs behind rail switches or a spine. A tier without a
// bandwidth limits nothing; a latency counts once for a message that passes the tier.
struct Machine {
  struct Tier {
    std::optional<double> bandwidth;  // bytes a second, of each link in each direction
    Time latency{0};
  };
  std::vector<int> node_of;  // [rank]
  int nics_per_node = 0;     // a node's ranks take them in turn; 0: one a rank
  bool rails = false;        // NICs of one index meet at a switch of their own
  Tier node;                 // a rank's port into its node
  Tier nic;                  // a NIC's port into the network
  Tier spine;                // the uplink of a node, or of a rail switch, to the spine
};

// A link that the config names, with the ordered pairs of ranks whose messages cross it.
struct NamedLink {
  std::string name;
  double bandwidth = 0;
  Time latency{0};
  std::vector<std::pair<Rank, Rank>> pairs;
};

// Which shared links a message between two ranks crosses. Inside a node: the sender's port out and
// the receiver's port in. Between nodes: the sender's NIC, the uplinks on the way through the
// spine, the receiver's NIC; NICs of one index on rails meet below the spine. Named links come
// beside.
class Topology {
 public:
  Topology(const std::optional<Machine>& machine, std::vector<NamedLink> named);

  [[nodiscard]] const std::vector<SharedLink>& links() const { return links_; }
  // In the order they are crossed; empty inside a rank and where nothing limits. O(links crossed).
  [[nodiscard]] std::vector<SharedLinkId> route(Rank from, Rank to) const;
  // Of all tiers and named links on the way.
  [[nodiscard]] Time latency(Rank from, Rank to) const;
  // The most a message gets with all links to itself, bytes a second; nothing: no limit.
  [[nodiscard]] std::optional<double> bandwidth(Rank from, Rank to) const;
  [[nodiscard]] std::optional<SharedLinkId> find(std::string_view name) const;

  // Bounds over all pairs of ranks.
  [[nodiscard]] Time longest_latency() const;
  [[nodiscard]] std::optional<double> least_bandwidth() const;

 private:
  static constexpr SharedLinkId kUnlimited = ~SharedLinkId{0};
  struct Pair {
    SharedLinkId out = kUnlimited;
    SharedLinkId in = kUnlimited;
  };
  struct Crossing {  // of named links
    std::uint64_t pair = 0;
    SharedLinkId link = 0;
    Time latency{0};
  };

  [[nodiscard]] static std::uint64_t key(Rank from, Rank to) {
    return static_cast<std::uint64_t>(from) << 32U | static_cast<std::uint32_t>(to);
  }
  void build(const Machine& machine);
  [[nodiscard]] Pair add_pair(const Machine::Tier& tier, const std::string& name,
                              std::string_view out, std::string_view in);
  [[nodiscard]] bool same_node(Rank from, Rank to) const;
  [[nodiscard]] bool meets_below_spine(Rank from, Rank to) const;
  // Calls `each` with the named links of a pair.
  template <typename Each>
  void for_named(Rank from, Rank to, Each each) const;

  std::vector<SharedLink> links_;
  std::vector<int> node_of_;        // [rank]; empty: no machine
  std::vector<int> nic_of_;         // [rank] index within its node
  std::vector<Pair> ports_, nics_;  // [rank]; ranks may share a NIC
  std::vector<Pair> uplinks_;       // [node], or with rails [NIC index]
  bool rails_ = false;
  Time node_latency_{0}, nic_latency_{0}, spine_latency_{0};
  std::vector<Crossing> named_;  // ascending by pair
};

}  // namespace counterflow
