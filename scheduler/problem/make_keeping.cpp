#include "scheduler/problem/make_keeping.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scheduler/problem/per_item.h"

namespace counterflow {
namespace {

using per_item::expand;
using per_item::fail;
using per_item::index;

std::string key_of(KeepingKind kind) {
  return fmt::format("stages.{}", name(kind));
}

Time copy_time(Bytes size, double bandwidth) {
  constexpr auto kLongest = static_cast<double>(kMaxTotal);
  return Time{std::llround(std::min(static_cast<double>(size.value) / bandwidth * 1e9, kLongest))};
}

// The way of each stage.
std::vector<Keeping> ways(const KeepingConfig& config, KeepingKind kind, const Problem& problem) {
  const int stages = problem.stages();
  const std::vector<Bytes> kept = expand(config.activation, stages, "stages");
  const std::vector<Time> time = expand(config.time, stages, "stages");
  std::vector<Keeping> result(index(stages));
  for (Stage s = 0; s < stages; ++s) {
    const Bytes all = problem.memory[index(s)].activation;
    if (kept[index(s)] >= all) {
      fail(config.activation.where, key_of(kind) + ".activation",
           fmt::format("stage {} would keep {} B of an activation of {} B; give less than that, or "
                       "leave {} out",
                       s, kept[index(s)].value, all.value, key_of(kind)));
    }
    Keeping& way = result[index(s)];
    way = {.kind = kind, .store = {}, .restore = time[index(s)], .kept = kept[index(s)]};
    if (kind == KeepingKind::recompute && !config.time) {
      way.restore = problem.costs.stages()[index(s)].forward;
    }
    if (config.bandwidth > 0) way.restore = copy_time(all - way.kept, config.bandwidth);
    if (kind == KeepingKind::offload) way.store = way.restore;
  }
  return result;
}

std::vector<bool> always(const KeepingConfig& config, KeepingKind kind, int stages) {
  std::vector<bool> marks(index(stages), config.always_all);
  if (!config.always) return marks;
  for (const int stage : config.always->value) {
    per_item::check_stage(stage, stages, config.always->where, key_of(kind) + ".always");
    marks[index(stage)] = true;
  }
  return marks;
}

}  // namespace

void add_keeping(const Config& config, Problem& problem) {
  if (!config.recompute && !config.offload) return;
  const int stages = problem.stages();
  std::vector<Keeping> fixed(index(stages));
  std::vector<std::vector<Keeping>> options(index(stages));
  const auto add = [&](const std::optional<KeepingConfig>& each, KeepingKind kind) {
    if (!each) return;
    const std::vector<Keeping> way = ways(*each, kind, problem);
    const std::vector<bool> is_fixed = always(*each, kind, stages);
    for (Stage s = 0; s < stages; ++s) {
      if (!problem.needs_backward_input(s)) continue;
      options[index(s)].push_back(way[index(s)]);
      if (!is_fixed[index(s)]) continue;
      if (fixed[index(s)].kind != KeepingKind::all) {
        fail(each->where, key_of(kind) + ".always",
             fmt::format("stage {} also recomputes always; take it out of one of the two", s));
      }
      fixed[index(s)] = way[index(s)];
    }
  };
  add(config.recompute, KeepingKind::recompute);
  add(config.offload, KeepingKind::offload);
  for (Stage s = 0; s < stages; ++s) {
    if (fixed[index(s)].kind != KeepingKind::all) options[index(s)].clear();
  }
  problem.keeping_options = std::move(options);
  problem = with_keeping(std::move(problem), std::move(fixed));
}

}  // namespace counterflow
