#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/ir/units.h"

// Makespan against memory: what a larger limit buys.
namespace counterflow {

struct FrontierPoint {
  std::int64_t limit = 0;  // of each rank; bytes with the static memory, or activations
  std::int64_t peak = 0;   // what the fullest rank then holds, counted alike
  Time makespan{0};
  Time lower_bound{0};
  double bubble_fraction = 0;
  std::string found_by;
  std::vector<Stage> recompute, offload;  // stages that do so, ascending
  // What is found where every stage keeps its activations; absent where that does not fit.
  std::optional<Time> all_kept;
};

struct Frontier {
  bool in_bytes = false;              // else in activations
  bool has_choices = false;           // stages may recompute or offload
  std::vector<FrontierPoint> points;  // limits ascend, makespans never grow
};

// A line a point.
[[nodiscard]] std::string frontier_table(const Frontier& frontier);
// {"schema_version", "resource": "bytes" or "activations", "points": [{"limit", "peak",
// "makespan_ns", "lower_bound_ns", "gap", "bubble_fraction"}]}; where stages may recompute or
// offload each point also has "recompute" and "offload", lists of stages, and "all_kept_ns", null
// where nothing fits without.
[[nodiscard]] std::string frontier_json(const Frontier& frontier);
// Steps of the makespan over the limit, and of its lower bound; where stages may recompute or
// offload also of the makespan without, and how many do so at each point.
[[nodiscard]] std::string frontier_svg(const Frontier& frontier);

}  // namespace counterflow
