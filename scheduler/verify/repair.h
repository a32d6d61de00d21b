#pragma once

#include <string>

#include "scheduler/ir/schedule_file.h"
#include "scheduler/problem/problem.h"

namespace counterflow {

// A file's communication put where it cannot deadlock under any semantics: the same computes in the
// same order on every rank, the same transfers, in other places. Stage actions (UNSHARD, RESHARD,
// REDUCE_GRAD) stay right before the compute they stood before. A file without a fault comes back
// as it is. Throws InfeasibleError, saying why, where moving transfers is not enough: the order of
// compute itself is faulty, or transfers are missing, doubled or senseless. O(n log p).
[[nodiscard]] ScheduleFile repair(const Problem& problem, const ScheduleFile& file);

}  // namespace counterflow
