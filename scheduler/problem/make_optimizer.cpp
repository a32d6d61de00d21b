#include "scheduler/problem/make_optimizer.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "scheduler/ir/op.h"
#include "scheduler/problem/per_item.h"

namespace counterflow {
namespace {

using per_item::check_stage;
using per_item::expand;
using per_item::fail;
using per_item::index;

void check_buckets(const Located<Bytes>& bucket, const std::vector<Bytes>& gradients) {
  for (std::size_t s = 0; s < gradients.size(); ++s) {
    const std::int64_t buckets = gradients[s].value / bucket.value.value;
    if (buckets < kMaxBuckets) continue;
    fail(bucket.where, "optimizer.bucket",
         fmt::format("{} B cut the gradients of stage {} into {} reductions; at most {} are "
                     "possible, so raise it",
                     bucket.value.value, s, buckets + 1, kMaxBuckets));
  }
}

TiedParameters checked(const Located<TiedParameters>& tied, const std::vector<Bytes>& gradients) {
  const auto stages = static_cast<int>(gradients.size());
  for (const Stage stage : tied.value.stages) {
    check_stage(stage, stages, tied.where, "optimizer.tied");
    if (tied.value.size <= gradients[index(stage)]) continue;
    fail(tied.where, "optimizer.tied",
         fmt::format("{} B are tied, but stage {} has {} B of gradients, of which they are a part; "
                     "lower the size",
                     tied.value.size.value, stage, gradients[index(stage)].value));
  }
  return tied.value;
}

}  // namespace

Optimizer make_optimizer(const OptimizerConfig& config, int stages) {
  Optimizer optimizer;
  if (config.data_parallel) optimizer.data_parallel = config.data_parallel->value;
  optimizer.gradients = expand(config.gradients, stages, "stages");
  optimizer.step = expand(config.step, stages, "stages");
  optimizer.global_norm = config.global_norm;
  optimizer.validation = config.validation;
  if (optimizer.validates()) {
    optimizer.validate = expand(config.validate, stages, "stages");
    // Parameters are as many numbers as their gradients.
    optimizer.snapshot =
        config.snapshot ? expand(*config.snapshot, stages, "stages") : optimizer.gradients;
  }
  if (config.bucket) {
    check_buckets(*config.bucket, optimizer.gradients);
    optimizer.bucket = config.bucket->value;
  }
  for (const auto& tied : config.tied) {
    optimizer.tied.push_back(checked(tied, optimizer.gradients));
  }
  if (config.fsdp) {
    optimizer.sharding = {.parameters = expand(config.fsdp->parameters, stages, "stages"),
                          .reshard = config.fsdp->reshard,
                          .prefetch = config.fsdp->prefetch};
  }
  return optimizer;
}

void shard_static_memory(Problem& problem) {
  if (!problem.optimizer || !problem.optimizer->sharding) return;
  // Copies of a stage in both directions are on ranks of their own.
  const std::int64_t shards =
      std::int64_t{problem.optimizer->data_parallel} * problem.placement.directions();
  for (Bytes& own : problem.limits.static_memory) {
    own.value = own.value / shards + (own.value % shards == 0 ? 0 : 1);
  }
}

void check_copies(const Config& config, int stages) {
  if (!config.optimizer || !config.optimizer->data_parallel) return;
  const int copies = config.optimizer->data_parallel->value;
  const SourceLocation& where = config.optimizer->data_parallel->where;
  const auto check = [&](std::string_view what, std::int64_t one, std::int64_t most) {
    if (one * copies <= most) return;
    fail(where, "optimizer.data_parallel",
         fmt::format("{} pipelines of {} {} have {}; at most {} are possible, so lower it", copies,
                     one, what, one * copies, most));
  };
  check("ranks", config.ranks.value, kMaxStages);
  check("microbatches", config.microbatches.value, kMaxMicrobatches);
  check("forwards", std::int64_t{stages} * config.microbatches.value, kMaxStageMicrobatches);
}

}  // namespace counterflow
