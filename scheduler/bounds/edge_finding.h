#pragma once

#include <cstdint>
#include <vector>

namespace counterflow {

// An op on a machine that runs one at a time: it begins no earlier than `earliest` and ends no
// later than `latest`.
struct TimedOp {
  std::int64_t earliest = 0;
  std::int64_t latest = 0;
  std::int64_t duration = 0;
  std::uint32_t id = 0;
};

// Raises `earliest` where an op can only run after a set of others (edge finding: Carlier and
// Pinson, in the form of Nuijten); reorders the ops. Returns false if they do not fit into their
// windows. O(n^2).
[[nodiscard]] bool find_edges(std::vector<TimedOp>& ops);

}  // namespace counterflow
