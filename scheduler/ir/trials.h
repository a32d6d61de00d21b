#pragma once

#include <cstdint>
#include <string>
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
  std::vector<OfRank> ranks;    // every rank
  std::vector<OfLink> links;    // every pair of ranks that exchanges messages, ascending
  std::vector<Time> makespans;  // [trial]; not written to files
};

// What a search for an order that stands disturbances found, and what it costs where there are
// none.
struct Robustness {
  // An order in a run without disturbances, and over the trials.
  struct Figures {
    Time makespan{0};
    Time mean{0};
    Time p95{0};
  };

  std::string goal;      // mean or p95: what was kept small
  std::string scenario;  // the file; empty: none
  int trials = 0;
  std::uint64_t seed = 0;
  Figures chosen;   // the order found
  Figures fastest;  // the one that a search for the makespan alone ends with

  // By how much the chosen order is slower where nothing disturbs it. Below zero where it is
  // faster even there: the search for the makespan alone need not find the best.
  [[nodiscard]] Time price() const { return chosen.makespan - fastest.makespan; }
  // By how much it is better at the goal.
  [[nodiscard]] Time gain() const {
    return goal == "p95" ? fastest.p95 - chosen.p95 : fastest.mean - chosen.mean;
  }
};

}  // namespace counterflow
