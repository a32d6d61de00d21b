#pragma once

#include <string>
#include <vector>

#include "scheduler/ir/program.h"
#include "scheduler/ir/timeline.h"

namespace counterflow {

// How far a measured timeline is from the predicted one of the same program.
struct PredictionError {
  // All instructions of one kind: "F", "F+B" for fused pairs, "SEND_F".
  struct OfKind {
    std::string kind;
    int count = 0;
    Time predicted{0};  // their mean length; of a transfer with what it waited for its other end
    Time measured{0};
    double error = 0;            // measured / predicted - 1; 0 where nothing was predicted
    Time largest_difference{0};  // of one instruction, measured less predicted, by magnitude
  };
  Time predicted_makespan{0};
  Time measured_makespan{0};
  double makespan_error = 0;
  std::vector<OfKind> kinds;  // in the order of OpKind
};

// Both timelines are of this program and ran to their end. O(instructions).
[[nodiscard]] PredictionError prediction_error(const Program& program, const Timeline& predicted,
                                               const Timeline& measured);

// One JSON object, without a line break after it.
void append_json(std::string& out, const PredictionError& error);
// A few lines for a terminal.
[[nodiscard]] std::string summary(const PredictionError& error);

}  // namespace counterflow
