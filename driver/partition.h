#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "driver/plan.h"
#include "report/report.h"
#include "scheduler/ir/execution_model.h"
#include "scheduler/problem/config.h"
#include "scheduler/problem/layout.h"

// Layers to stages to ranks: the cut, the map and the schedule that are fastest together.
namespace counterflow {

// One cut, simulated. `fault`: why it cannot run; then there is no report.
struct CutRun {
  std::string name;  // "even", "given", "balanced", "found"
  Cut cut;
  std::int64_t bottleneck = 0;  // load of the most loaded rank, ns an average microbatch
  std::optional<Report> report;
  std::string fault;
};

struct Partition {
  Plan plan;                   // of the cut found, with its layout in the config
  Config asked;                // as read
  std::vector<CutRun> others;  // to compare with, on the same map and schedule
  CutRun found;
  std::vector<std::int64_t> rank_loads;  // ns an average microbatch
  std::int64_t bottleneck_bound = 0;     // no cut on this map has a smaller bottleneck
  std::int64_t scored = 0;               // cuts that were simulated, over all maps
  bool complete = false;                 // on the map and schedule found, all that there are
};

// The partition of a config; paths in it start at `folder`, and a deadlock under one of `semantics`
// is a fault. Maps are the config's, or where schedule `auto` leaves them open loop and v, each
// with the families that take it. `iterations`: cuts to simulate, 0 for a number that takes
// seconds. Throws InputError, and InfeasibleError where no cut fits.
[[nodiscard]] Partition find_partition(const Config& config, const std::filesystem::path& folder,
                                       std::span<const Semantics> semantics,
                                       std::int64_t iterations = 0, std::uint64_t seed = 0);

}  // namespace counterflow
