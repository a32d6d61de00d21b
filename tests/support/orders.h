#pragma once

#include <string>

#include "scheduler/ir/diagnostic.h"
#include "scheduler/ir/schedule_file.h"

// Orders and ops written as text, and diagnostics shown as text.
namespace counterflow::testing {

// A schedule from its text: one row a rank.
[[nodiscard]] inline Schedule order(const std::string& rows) {
  return parse_schedule(rows, "order.csv").compute();
}
// One op of any kind: "0F3", "~1SEND_B2".
[[nodiscard]] inline Op op(const std::string& text) {
  return parse_schedule(text + "\n", "op").rows.at(0).at(0).op;
}

// One line a diagnostic: "rule rank 1 [3] 0F1: message".
[[nodiscard]] inline std::string text(const Diagnostics& diagnostics) {
  std::string all;
  for (const Diagnostic& d : diagnostics) {
    all += d.rule;
    if (d.rank) all += " rank " + std::to_string(*d.rank);
    if (d.index) all += " [" + std::to_string(*d.index) + "]";
    if (d.op.kind != OpKind::none) all += " " + to_string(d.op);
    all += ": " + d.message + "\n";
  }
  return all;
}

}  // namespace counterflow::testing
