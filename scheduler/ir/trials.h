#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/ir/units.h"

namespace counterflow {

// What many runs of one program under jitter show: made by the simulator, written by the report.
struct Trials {
  // How much the makespan grows with one thing: (M(x) - M(0)) / (x M(0)), where M(x) is the mean
  // makespan over the same draws with that thing slower by the share x. 1: in proportion; 0: not.
  struct OfRank {
    Rank rank = 0;
    double sensitivity = 0;  // to all its computes
  };
  struct OfLink {
    Rank from = 0;
    Rank to = 0;
    double sensitivity = 0;  // to all its messages, latency and bytes
  };

  int count = 0;
  std::uint64_t seed = 0;
  double mean_ns = 0;
  // Nearest rank: the smallest makespan that at least this share of all do not exceed.
  Time least{0}, p5{0}, median{0}, p95{0}, most{0};
  int sensitivity_trials = 0;  // the first so many draws
  double sensitivity_step = 0;
  std::vector<OfRank> ranks;  // every rank
  std::vector<OfLink> links;  // every pair of ranks that exchanges messages, ascending
};

}  // namespace counterflow
