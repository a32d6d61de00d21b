#pragma once

#include <string>
#include <vector>

#include "driver/plan.h"
#include "report/report.h"

namespace counterflow {

// What a user of this plan should know beside its figures: its own warnings, too few microbatches,
// uneven memory, doubled parameters. One sentence or two each, with what to change.
[[nodiscard]] std::vector<std::string> warnings(const Plan& plan, const Report& report);

}  // namespace counterflow
