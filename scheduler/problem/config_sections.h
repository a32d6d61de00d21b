#pragma once

#include <utility>

#include "scheduler/problem/config.h"
#include "scheduler/problem/cursor.h"

// One reader a section of the config; each fills its part of `config`. Later ones rely on earlier
// ones, in this order: the number of ranks, whether there are activations and messages, the links.
namespace counterflow {

void read_pipeline(const Cursor& at, Config& config);
void read_stages(const Cursor& at, Config& config);
void read_keeping(const Cursor& at, Config& config);  // recompute and offload, of the stages
// What says so of layers, which cannot.
[[noreturn]] void refuse_with_layers(const Cursor& keeping);
void read_layers(const Cursor& at, Config& config);
// After the pipeline and the layers. Where it is the only one to say how many stages a rank has, it
// sets `chunks`.
void read_layout(const Cursor& at, Config& config);
void read_links(const Cursor& at, Config& config);
void read_topology(const Cursor& at, Config& config);
void read_jitter(const Cursor& at, Config& config);
void read_optimizer(const Cursor& at, Config& config);

// An ordered pair [from rank, to rank] of different ranks.
[[nodiscard]] std::pair<Rank, Rank> read_rank_pair(const Cursor& at, int ranks);

}  // namespace counterflow
