#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "scheduler/error.h"
#include "scheduler/ir/diagnostic.h"

namespace counterflow {

// The answer no, with its reasons as data.
class FaultyError : public InfeasibleError {
 public:
  FaultyError(const std::string& message, Diagnostics faults)
      : InfeasibleError(message), faults_(std::move(faults)) {}
  [[nodiscard]] const Diagnostics& faults() const { return faults_; }

 private:
  Diagnostics faults_;
};

// The text grid that positions of a list of faults refer to: one row a rank, as a schedule file.
struct GridOf {
  std::string csv;
};

// So many faults are printed with their grid; a list may have as many as the schedule has ops.
inline constexpr std::size_t kMostFaultsShown = 20;

// The first `most` faults: rule, rank, position, op and message, and the cells around it with a
// marker below. O(grid), however many there are.
[[nodiscard]] std::string to_text(const Diagnostics& faults, const GridOf& grid,
                                  std::size_t most = kMostFaultsShown);

// [{"rule", "rank", "index", "op", "message"}], null where there is no such place.
[[nodiscard]] nlohmann::ordered_json to_json(const Diagnostics& faults);

}  // namespace counterflow
