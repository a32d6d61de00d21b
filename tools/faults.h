#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "scheduler/ir/diagnostic.h"

namespace counterflow {

// The text grid that positions of a list of faults refer to: one row a rank, as a schedule file.
struct GridOf {
  std::string csv;
};

// Every fault: rule, rank, position, op and message, and the cells around it with a marker below.
[[nodiscard]] std::string to_text(const Diagnostics& faults, const GridOf& grid);

// [{"rule", "rank", "index", "op", "message"}], null where there is no such place.
[[nodiscard]] nlohmann::ordered_json to_json(const Diagnostics& faults);

}  // namespace counterflow
