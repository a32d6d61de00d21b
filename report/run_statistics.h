#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/drift.h"
#include "report/straggler.h"
#include "scheduler/ir/units.h"

namespace counterflow {

// How the steps of a run went, beside each other and beside the prediction. Times are own times
// (own_time.h); of many steps, medians and spreads are those of an even sample of them.
struct RunStatistics {
  // The instructions of one kind on one rank.
  struct OfRank {
    Rank rank = 0;
    std::string kind;     // "F", "F+B", "SEND_F"
    int count = 0;        // in a step
    Time predicted{0};    // mean
    Time mean{0};         // over all steps
    Time median{0};       // of the steps' medians
    Time spread{0};       // of the ops of a step, as a standard deviation; median over the steps
    Time step_spread{0};  // of the steps' medians, likewise
  };
  int steps = 0;
  std::vector<OfRank> ranks;          // by kind in the order of OpKind, then by rank
  std::vector<Straggler> stragglers;  // those that cost most first
  std::optional<Drift> drift;         // of fewer than ten steps none
  Time predicted_makespan{0};
};

// One JSON object, without a line break after it.
void append_json(std::string& out, const RunStatistics& statistics);
// A few lines for a terminal.
[[nodiscard]] std::string summary(const RunStatistics& statistics);

}  // namespace counterflow
