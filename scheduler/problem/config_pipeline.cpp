#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "scheduler/ir/op.h"
#include "scheduler/problem/config.h"
#include "scheduler/problem/config_sections.h"
#include "scheduler/problem/cursor.h"
#include "scheduler/problem/phase.h"

namespace counterflow {
namespace {

int read_count(const Cursor& at) {
  return at.small_integer(1, kMaxStages);
}

std::vector<double> read_factors(const Cursor& at, int microbatches) {
  auto factors =
      at.list_of("factors, one a microbatch", [](const Cursor& c) { return c.factor(); });
  if (factors.size() != static_cast<std::size_t>(microbatches)) {
    at.fail(fmt::format("a list of {} for {} microbatches; give one factor a microbatch",
                        factors.size(), microbatches));
  }
  return factors;
}

MicrobatchFactors read_scale(const Cursor& at, int microbatches) {
  if (!at.is_map()) {
    // Costs are times; what an activation occupies changes only where the map form says so.
    const std::vector<double> all = read_factors(at, microbatches);
    return {all, all, all, std::vector<double>(all.size(), 1.0)};
  }
  at.allow_keys({"forward", "backward_input", "backward_weight", "activation"});
  const auto kind = [&](std::string_view key) {
    const auto given = at.find(key);
    return given ? read_factors(*given, microbatches)
                 : std::vector<double>(static_cast<std::size_t>(microbatches), 1.0);
  };
  MicrobatchFactors factors;
  factors.forward = kind("forward");
  factors.backward_input = kind("backward_input");
  factors.backward_weight = kind("backward_weight");
  factors.activation = kind("activation");
  return factors;
}

void read_microbatches(const Cursor& at, Config& config) {
  const auto count = [](const Cursor& c) { return c.small_integer(1, kMaxMicrobatches); };
  if (!at.is_map()) {
    config.microbatches = at.located(count);
    return;
  }
  at.allow_keys({"count", "scale"});
  config.microbatches = at.at("count", "24").located(count);
  if (const auto scale = at.find("scale")) {
    config.factors = read_scale(*scale, config.microbatches.value);
  }
}

Phase read_phase(const Cursor& at) {
  at.allow_keys({"name", "microbatches"});
  std::vector<std::string_view> names;
  for (const PhaseKind kind : kPhaseKinds) names.push_back(name(kind));
  const std::string_view chosen = at.at("name", "train").choice(names);
  const auto kind = std::ranges::find(kPhaseKinds, chosen, [](PhaseKind k) { return name(k); });
  return {.kind = *kind, .count = at.at("microbatches", "8").small_integer(1, kMaxMicrobatches)};
}

// The phases, and with them the number of all microbatches.
void read_phases(const Cursor& at, Config& config) {
  auto phases = at.list_of("phases, such as {name: eval, microbatches: 4}", read_phase);
  if (phases.empty()) {
    at.fail(
        "the list is empty; name a phase, such as {name: train, microbatches: 8}, or leave it "
        "out and give pipeline.microbatches");
  }
  if (phases.size() > kMaxPhases) {
    at.fail(fmt::format("{} phases; at most {} are possible", phases.size(), kMaxPhases));
  }
  std::int64_t total = 0;
  for (Phase& phase : phases) {
    phase.first = static_cast<Microbatch>(total);
    total += phase.count;
    if (total <= kMaxMicrobatches) continue;
    at.fail(fmt::format("the phases have more than {} microbatches together; lower their numbers",
                        kMaxMicrobatches));
  }
  if (config.microbatches.value != 0 && config.microbatches.value != total) {
    throw InputError(config.microbatches.where,
                     fmt::format("pipeline.microbatches: {} beside pipeline.phases, which have {} "
                                 "together; leave it out, or make them equal",
                                 config.microbatches.value, total));
  }
  if (config.microbatches.value == 0) {
    config.microbatches = {static_cast<int>(total), at.where()};
  }
  config.phases = {std::move(phases), at.where()};
}

PlacementChoice read_rank_list(const Cursor& at, int ranks) {
  PlacementChoice choice{PlacementKind::list, {}};
  choice.list = at.list_of("ranks, one a stage",
                           [&](const Cursor& c) { return c.small_integer(0, ranks - 1); });
  if (choice.list.size() > static_cast<std::size_t>(kMaxStages)) {
    at.fail(fmt::format("{} stages; at most {} are possible", choice.list.size(), kMaxStages));
  }
  std::vector<bool> used(static_cast<std::size_t>(ranks), false);
  for (const Rank rank : choice.list) used[static_cast<std::size_t>(rank)] = true;
  const auto idle = std::find(used.begin(), used.end(), false);
  if (idle != used.end()) {
    at.fail(
        fmt::format("rank {} holds no stage; give every one of the {} ranks a stage, or lower "
                    "pipeline.ranks",
                    idle - used.begin(), ranks));
  }
  return choice;
}

PlacementChoice read_placement(const Cursor& at, int ranks) {
  if (at.is_list()) return read_rank_list(at, ranks);
  const std::vector<std::pair<std::string_view, PlacementKind>> kinds = {
      {"loop", PlacementKind::loop},
      {"v", PlacementKind::v},
      {"wave", PlacementKind::wave},
      {"bidirectional", PlacementKind::bidirectional}};
  std::vector<std::string_view> names;
  for (const auto& [name, kind] : kinds) names.push_back(name);
  const std::string_view chosen = at.choice(names);
  const auto named = [&](const auto& entry) { return entry.first == chosen; };
  return {std::find_if(kinds.begin(), kinds.end(), named)->second, {}};
}

SplitBackward read_split(const Cursor& at) {
  const std::string_view word = at.choice({"auto", "true", "false"});
  if (word == "auto") return SplitBackward::automatic;
  return word == "true" ? SplitBackward::split : SplitBackward::full;
}

std::vector<std::vector<int>> read_groups(const Cursor& at) {
  return at.list_of("groups, such as [[0, 7]]", [](const Cursor& group) {
    auto numbers = group.list_of("stages, or layers where there are", [](const Cursor& c) {
      return c.small_integer(0, static_cast<std::int64_t>(kMaxLayers) - 1);
    });
    if (numbers.size() < 2) {
      group.fail(
          fmt::format("a group of {}; name two at least that must share a rank", numbers.size()));
    }
    return numbers;
  });
}

void check_stage_count(const Cursor& pipeline, const Config& config) {
  if (!config.chunks) return;
  const Cursor at = *pipeline.find("chunks");
  if (config.placement && config.placement->value.kind == PlacementKind::list) {
    at.fail("given beside a placement list, which already says each rank's stages; remove one");
  }
  const std::int64_t stages = std::int64_t{config.ranks.value} * config.chunks->value;
  if (stages > kMaxStages) {
    at.fail(
        fmt::format("{} ranks of {} chunks are {} stages; at most {} are possible, so lower one",
                    config.ranks.value, config.chunks->value, stages, kMaxStages));
  }
}

}  // namespace

void read_pipeline(const Cursor& at, Config& config) {
  at.allow_keys({"ranks", "microbatches", "schedule", "chunks", "placement", "split_backward",
                 "group_size", "phases", "keep_together"});
  config.ranks = at.at("ranks", "8").located(read_count);
  const auto phases = at.find("phases");
  const auto microbatches = at.find("microbatches");
  if (microbatches || !phases) read_microbatches(at.at("microbatches", "24"), config);
  if (phases) read_phases(*phases, config);
  config.schedule = at.at("schedule", "1f1b").located([](const Cursor& c) {
    return c.text("a schedule; write a name such as 1f1b, or the path of a .csv file");
  });
  if (const auto chunks = at.find("chunks")) config.chunks = chunks->located(read_count);
  if (const auto placement = at.find("placement")) {
    config.placement =
        placement->located([&](const Cursor& c) { return read_placement(c, config.ranks.value); });
  }
  if (const auto split = at.find("split_backward")) {
    config.split_backward = read_split(*split);
    config.split_backward_where = split->where();
  }
  if (const auto group = at.find("group_size")) {
    config.group_size =
        group->located([](const Cursor& c) { return c.small_integer(1, kMaxMicrobatches); });
  }
  if (const auto together = at.find("keep_together")) {
    config.keep_together = together->located(read_groups);
  }
  check_stage_count(at, config);
}

}  // namespace counterflow
