#pragma once

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <vector>

#include "scheduler/graph/channels.h"
#include "scheduler/graph/gradient_sums.h"
#include "scheduler/ir/program.h"
#include "scheduler/problem/problem.h"

namespace counterflow {

// When each run of a program begins and each message is made, as insert_transfers has it: every op
// as early as it can, and lasting at least a nanosecond.
class RunTimes {
 public:
  // O(n log p).
  RunTimes(const Problem& problem, const Program& program);

  // Of the rank's run-th op or pair.
  [[nodiscard]] Time begin(std::size_t rank, std::size_t run) const { return begins_[rank][run]; }
  [[nodiscard]] Time end(std::size_t rank, std::size_t run, const Kernel& kernel) const {
    return begin(rank, run) + std::max(Time{1}, kernel.duration);
  }
  [[nodiscard]] Time made(const Payload& payload) const {
    return made_[at(*channels_.find(payload), payload.microbatch)];
  }

 private:
  [[nodiscard]] std::size_t at(Channels::Id id, Microbatch microbatch) const {
    return id * microbatches_ + static_cast<std::size_t>(microbatch);
  }

  const Channels channels_;
  std::size_t microbatches_;
  std::vector<Time> made_;                 // [channel][microbatch]
  std::vector<std::vector<Time>> begins_;  // [rank][run]
};

// A sum that several ranks have a share of, and when the last of them is ready.
struct Reduction {
  Time ready{0};
  GradientSums::Id sum = 0;
  [[nodiscard]] auto place() const { return std::tie(ready, sum); }
};

// The reductions in the order in which every rank goes through its own. O(n).
[[nodiscard]] std::vector<Reduction> reductions_of(const GradientSums& sums, const RunTimes& times,
                                                   const Program& program);

}  // namespace counterflow
