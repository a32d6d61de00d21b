#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/bounds/op_network.h"

namespace counterflow {

// Windows of ops under the assumption that some schedule has a makespan of at most `makespan`, seen
// in one direction of time. Seen backward begins and ends, waiting and being waited for, taking and
// giving back change places; so an argument written once serves both ways.
struct Side {
  const OpNetwork& network;
  std::vector<std::int64_t>& head;        // [op] least time before it begins
  const std::vector<std::int64_t>& tail;  // [op] least time after it ends
  std::vector<std::uint8_t>& touched;     // [rank] has a window of its ops changed?
  std::int64_t makespan;
  bool backward;

  void raise(std::uint32_t op, std::int64_t time) {
    if (time <= head[op]) return;
    head[op] = time;
    touched[network.rank[op]] = 1;
  }
  [[nodiscard]] std::int64_t earliest_end(std::uint32_t op) const {
    return head[op] + network.duration[op];
  }
  [[nodiscard]] std::int64_t latest_end(std::uint32_t op) const { return makespan - tail[op]; }
  [[nodiscard]] std::int64_t latest_begin(std::uint32_t op) const {
    return latest_end(op) - network.duration[op];
  }
  // Has it only one time to run?
  [[nodiscard]] bool settled(std::uint32_t op) const { return earliest_end(op) >= latest_end(op); }
  [[nodiscard]] bool precedes(std::uint32_t first, std::uint32_t second) const {
    return backward ? network.precedes(second, first) : network.precedes(first, second);
  }
  [[nodiscard]] const std::vector<OpNetwork::Arc>& waits(std::uint32_t op) const {
    return backward ? network.after[op] : network.before[op];
  }
  [[nodiscard]] const std::vector<std::int64_t>& need(const OpNetwork::Store& store) const {
    return backward ? store.give : store.need;
  }
  [[nodiscard]] const std::vector<std::int64_t>& give(const OpNetwork::Store& store) const {
    return backward ? store.need : store.give;
  }
};

}  // namespace counterflow
