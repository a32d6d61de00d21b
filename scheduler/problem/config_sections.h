#pragma once

#include "scheduler/problem/config.h"
#include "scheduler/problem/cursor.h"

// One reader a section of the config; each fills its part of `config`. Later ones rely on earlier
// ones, in this order: the number of ranks, whether there are activations.
namespace counterflow {

void read_pipeline(const Cursor& at, Config& config);
void read_stages(const Cursor& at, Config& config);
void read_links(const Cursor& at, Config& config);

}  // namespace counterflow
