#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "scheduler/ir/op.h"
#include "scheduler/problem/config_sections.h"

namespace counterflow {
namespace {

// Gradients are FP32.
constexpr std::int64_t kElement = 4;

Bytes read_gradients(const Cursor& at) {
  const Bytes size = at.size();
  if (size.value % kElement != 0) {
    at.fail(fmt::format("{} B are no whole number of FP32 gradients; give a multiple of 4 B",
                        size.value));
  }
  return size;
}

TiedParameters read_tied(const Cursor& at, std::set<Stage>& seen) {
  at.allow_keys({"stages", "size"});
  const Cursor stages = at.at("stages", "[0, 7]");
  TiedParameters tied;
  tied.stages = stages.list_of("stage numbers", [&](const Cursor& c) {
    const Stage stage = c.small_integer(0, kMaxStages - 1);
    if (!seen.insert(stage).second) {
      c.fail(fmt::format("stage {} is tied twice; keep one of them", stage));
    }
    return stage;
  });
  if (tied.stages.size() < 2) stages.fail("name two stages at least: those that share parameters");
  std::ranges::sort(tied.stages);
  tied.size = read_gradients(at.at("size", "1GiB"));
  return tied;
}

// When the norm counts, and what it takes to amend a step that did not wait for it.
void read_validation(const Cursor& at, OptimizerConfig& optimizer) {
  if (const auto c = at.find("validation")) {
    if (c->choice({"before", "after"}) == "after") optimizer.validation = Validation::after;
    if (optimizer.validation == Validation::after && !optimizer.global_norm) {
      c->fail(
          "after is how steps go by the norm of all gradients; set global_norm: true as well, "
          "or leave it out");
    }
  }
  const bool validates = optimizer.validation == Validation::after;
  const auto needs_validation = [&](const Cursor& c, std::string_view what) {
    if (!validates) {
      c.fail(
          fmt::format("{} only where steps do not wait for the norm; set validation: after, or "
                      "leave it out",
                      what));
    }
  };
  if (const auto c = at.find("validate")) {
    needs_validation(*c, "VALIDATE runs");
    optimizer.validate = c->per_item([](const Cursor& one) { return one.duration(); });
  }
  if (const auto c = at.find("snapshot")) {
    needs_validation(*c, "parameters are kept");
    optimizer.snapshot = c->per_item([](const Cursor& one) { return one.size(); });
  }
}

ShardingConfig read_fsdp(const Cursor& at, const OptimizerConfig& optimizer) {
  at.allow_keys({"parameters", "reshard", "prefetch"});
  if (!optimizer.data_parallel || optimizer.data_parallel->value < 2) {
    at.fail(
        "parameters are sharded over pipelines side by side, and there is one; give "
        "optimizer.data_parallel: 2 or more, or leave fsdp out");
  }
  if (optimizer.validation == Validation::after) {
    at.fail(
        "steps on shards are not validated after they were made; leave out "
        "optimizer.validation: after, or fsdp");
  }
  ShardingConfig fsdp;
  fsdp.parameters =
      at.at("parameters", "175MiB").per_item([](const Cursor& one) { return one.size(); });
  if (const auto c = at.find("reshard")) {
    const bool never = c->choice({"after_use", "never"}) == "never";
    fsdp.reshard = never ? Resharding::never : Resharding::after_use;
  }
  if (const auto c = at.find("prefetch")) fsdp.prefetch = c->small_integer(0, kMaxPrefetch);
  return fsdp;
}

}  // namespace

void read_optimizer(const Cursor& at, Config& config) {
  at.allow_keys({"data_parallel", "gradients", "bucket", "step", "global_norm", "validation",
                 "validate", "snapshot", "tied", "fsdp"});
  OptimizerConfig optimizer;
  optimizer.where = at.where();
  optimizer.gradients = at.at("gradients", "350MiB").per_item(read_gradients);
  if (const auto c = at.find("data_parallel")) {
    optimizer.data_parallel =
        c->located([](const Cursor& one) { return one.small_integer(1, kMaxDataParallel); });
  }
  if (const auto c = at.find("bucket")) {
    optimizer.bucket = c->located([](const Cursor& one) { return one.size(); });
    if (optimizer.bucket->value.value < kElement) {
      c->fail("smaller than one gradient of 4 B; give for example 25MiB, or leave it out");
    }
  }
  if (const auto c = at.find("step")) {
    optimizer.step = c->per_item([](const Cursor& one) { return one.duration(); });
  }
  if (const auto c = at.find("global_norm")) optimizer.global_norm = c->boolean();
  read_validation(at, optimizer);
  if (const auto c = at.find("tied")) {
    std::set<Stage> seen;
    optimizer.tied = c->list_of("maps of stages and size", [&](const Cursor& one) {
      return one.located([&](const Cursor& map) { return read_tied(map, seen); });
    });
  }
  if (const auto c = at.find("fsdp")) optimizer.fsdp = read_fsdp(*c, optimizer);
  config.optimizer = std::move(optimizer);
}

}  // namespace counterflow
