#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "scheduler/ir/units.h"
#include "scheduler/problem/topology.h"

namespace counterflow {

// What a hop between two ranks costs. Latency is pure delay: it occupies no rank, stream or link.
// With a bandwidth, a message also occupies its link (one for each ordered pair of ranks) for
// size / bandwidth, and messages of one link follow each other. With a topology instead, messages
// share its links fairly, and its latencies come on top. A hop inside a rank is free.
class Links {
 public:
  Links() = default;
  // The same latency on every link; bandwidth in bytes a second, 0 for unlimited.
  explicit Links(Time latency, double bandwidth = 0) : latency_(latency), bandwidth_(bandwidth) {}
  // latency[src * ranks + dst]
  Links(int ranks, std::vector<Time> latency, double bandwidth)
      : table_(std::move(latency)), ranks_(ranks), bandwidth_(bandwidth) {}

  // For so many copies of the ranks: between two copies as between the two ranks of one, and from a
  // rank to its own copies the longest latency there is. A topology knows all ranks already.
  [[nodiscard]] Links in_copies(int copies) const;

  // The same latencies over shared links. Only without a bandwidth.
  [[nodiscard]] Links with(Topology topology) const;

  // Of the pair and of the topology together.
  [[nodiscard]] Time latency(Rank from, Rank to) const {
    if (from == to) return Time{0};
    const Time own =
        table_.empty() ? latency_
                       : table_[static_cast<std::size_t>(from) * static_cast<std::size_t>(ranks_) +
                                static_cast<std::size_t>(to)];
    return topology_ ? own + topology_->latency(from, to) : own;
  }
  [[nodiscard]] bool has_bandwidth() const { return bandwidth_ > 0; }
  // Do all messages cost their latency and nothing else?
  [[nodiscard]] bool only_latency() const { return !has_bandwidth() && !topology_; }
  // nullptr: no shared links.
  [[nodiscard]] const Topology* topology() const { return topology_.get(); }
  // The largest latency of any link. O(1), with a table O(ranks^2).
  [[nodiscard]] Time longest_latency() const;
  // How long a message occupies its link, rounded to whole nanoseconds; 2^62 ns at most.
  [[nodiscard]] Time occupancy(Bytes size) const;
  // How long a message takes through shared links that it has to itself, beside its latency; 0 ns
  // without a topology. Rounded and limited as above.
  [[nodiscard]] Time passage(Rank from, Rank to, Bytes size) const;
  // From its sending to its arrival, with the whole way to itself; 0 inside a rank.
  [[nodiscard]] Time alone(Rank from, Rank to, Bytes size) const {
    if (from == to) return Time{0};
    return latency(from, to) + occupancy(size) + passage(from, to, size);
  }
  // No message of this size takes longer on its own, latency included.
  [[nodiscard]] Time longest_hop(Bytes size) const;

 private:
  Time latency_{0};
  std::vector<Time> table_;
  int ranks_ = 0;
  double bandwidth_ = 0;                      // bytes a second; 0: unlimited
  std::shared_ptr<const Topology> topology_;  // shared, since problems are copied
};

}  // namespace counterflow
