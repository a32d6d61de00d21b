#pragma once

#include <string>

#include "driver/partition.h"

namespace counterflow {

// What `partition --json` prints, one object.
[[nodiscard]] std::string partition_json(const Partition& partition);
// Stages, ranks and the cuts side by side, for a terminal.
[[nodiscard]] std::string partition_table(const Partition& partition);
// The layout string of a cut.
[[nodiscard]] std::string layout_of(const Partition& partition, const Cut& cut);

}  // namespace counterflow
