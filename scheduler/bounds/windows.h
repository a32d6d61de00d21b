#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/bounds/edge_finding.h"
#include "scheduler/bounds/lines.h"
#include "scheduler/bounds/memory_windows.h"
#include "scheduler/bounds/op_network.h"

namespace counterflow {

// Assumes that a schedule within some makespan exists and narrows the windows of its ops until
// nothing moves or an op has no room left: then there is none. Each step uses one argument: longest
// ways, edge finding on each rank, and what is held of each memory limit; all of them forward and
// backward in time.
class WindowTest {
 public:
  WindowTest(const Problem& problem, const Lines& lines);

  // False only if no schedule has a makespan of at most this. At most `rounds` rounds of
  // O(ops * ops of a rank).
  [[nodiscard]] bool may_exist(std::int64_t makespan, int rounds = 16) const;
  // The same from windows already narrowed for this makespan, of which those of one rank have
  // changed since.
  [[nodiscard]] bool narrow(Windows& windows, std::int64_t makespan, int rounds,
                            Rank changed) const;
  // One op after the other: if there are schedules at all, one is no longer than this.
  [[nodiscard]] std::int64_t longest() const;
  // The largest time that divides every duration and delay.
  [[nodiscard]] std::int64_t grain() const;
  [[nodiscard]] const OpNetwork& network() const { return network_; }
  // Longest ways, without any assumption.
  [[nodiscard]] const Windows& ways() const { return ways_; }

 private:
  using Touched = std::vector<std::uint8_t>;  // [rank]

  [[nodiscard]] bool narrow(Windows& windows, std::int64_t makespan, int rounds,
                            Touched& touched) const;
  [[nodiscard]] bool propagate(Side& forward, Side& backward) const;
  [[nodiscard]] bool tighten(Side& side, const Touched& ranks) const;
  void open_ops(const Side& side, const std::vector<std::uint32_t>& of_rank,
                std::vector<TimedOp>& ops) const;

  OpNetwork network_;
  std::vector<MemoryWindows> memory_;
  Windows ways_;
};

// The bound comes as near to what the test can refute as one part in this.
inline constexpr std::int64_t kWindowResolution = 4096;

// The largest bound that the test proves, from `known` (a bound itself) upward by steps that double
// and then halve: destructive improvement. At least `known`; nothing more where no schedule exists.
// About a dozen tests.
[[nodiscard]] std::int64_t window_bound(const Problem& problem, const Lines& lines,
                                        std::int64_t known);

}  // namespace counterflow
