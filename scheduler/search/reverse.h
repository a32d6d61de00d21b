#pragma once

#include "scheduler/search/model.h"

namespace counterflow {

// The orders of a model as orders of its reverse, and back. Fused pairs stay fused.
[[nodiscard]] SearchModel::Orders reversed(const SearchModel& model, SearchModel::Orders orders);

}  // namespace counterflow
