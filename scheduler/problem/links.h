#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "scheduler/ir/units.h"

namespace counterflow {

// What a hop between two ranks costs. Latency is pure delay: it occupies no rank, stream or link.
// With a bandwidth, a message also occupies its link (one for each ordered pair of ranks) for
// size / bandwidth, and messages of one link follow each other. A hop inside a rank is free.
class Links {
 public:
  Links() = default;
  // The same latency on every link; bandwidth in bytes a second, 0 for unlimited.
  explicit Links(Time latency, double bandwidth = 0) : latency_(latency), bandwidth_(bandwidth) {}
  // latency[src * ranks + dst]
  Links(int ranks, std::vector<Time> latency, double bandwidth)
      : table_(std::move(latency)), ranks_(ranks), bandwidth_(bandwidth) {}

  [[nodiscard]] Time latency(Rank from, Rank to) const {
    if (from == to) return Time{0};
    if (table_.empty()) return latency_;
    return table_[static_cast<std::size_t>(from) * static_cast<std::size_t>(ranks_) +
                  static_cast<std::size_t>(to)];
  }
  [[nodiscard]] bool has_bandwidth() const { return bandwidth_ > 0; }
  // The largest latency of any link. O(1), with a table O(ranks^2).
  [[nodiscard]] Time longest_latency() const;
  // How long a message occupies its link, rounded to whole nanoseconds; 2^62 ns at most.
  [[nodiscard]] Time occupancy(Bytes size) const;

 private:
  Time latency_{0};
  std::vector<Time> table_;
  int ranks_ = 0;
  double bandwidth_ = 0;  // bytes a second; 0: unlimited
};

}  // namespace counterflow
