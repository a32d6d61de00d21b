#pragma once

#include "scheduler/search/model.h"

namespace counterflow {

// The orders of a model, without fused pairs, as orders of its reverse, and back.
[[nodiscard]] SearchModel::Orders reversed(const SearchModel& model, SearchModel::Orders orders);

}  // namespace counterflow
