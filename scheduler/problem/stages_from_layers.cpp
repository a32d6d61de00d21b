#include "scheduler/problem/stages_from_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scheduler/partition/refine.h"
#include "scheduler/problem/keep_together.h"

namespace counterflow {
namespace {

double mean(const std::vector<double>& factors) {
  if (factors.empty()) return 1;
  return std::accumulate(factors.begin(), factors.end(), 0.0) / static_cast<double>(factors.size());
}

// A list with one entry a stage, named as if it stood in `stages`.
template <typename Get>
auto per_stage(const Config& config, const std::vector<StageSum>& sums, std::string key, Get get) {
  PerItem<decltype(get(sums.front()))> item;
  item.is_list = true;
  item.where = config.layers->where;
  item.key = std::move(key);
  for (const StageSum& sum : sums) item.values.push_back(get(sum));
  return item;
}

// What a rank holds from the start: its own, and that of the layers on it.
PerItem<Bytes> static_of_ranks(const Config& config, const Placement& placement,
                               const std::vector<StageSum>& sums) {
  PerItem<Bytes> item = config.static_memory.value_or(
      PerItem<Bytes>{{Bytes{0}}, false, config.layers->where, "memory.static"});
  const auto ranks = static_cast<std::size_t>(placement.ranks());
  if (!item.is_list) item.values.assign(ranks, item.values.front());
  item.is_list = true;
  if (item.values.size() != ranks) return item;  // refused with the problem
  for (Rank rank = 0; rank < placement.ranks(); ++rank) {
    for (const Chunk& chunk : placement.chunks_of(rank)) {
      item.values[static_cast<std::size_t>(rank)] +=
          sums[static_cast<std::size_t>(chunk.stage)].fixed;
    }
  }
  return item;
}

// Stages that share a rank, and with two replicas stages that two ranks share alike.
std::vector<int> groups_of(const Placement& placement) {
  std::vector<int> groups;
  for (Stage s = 0; s < placement.stages(); ++s) {
    const Rank rank = placement.rank_of(s);
    groups.push_back(placement.replicas() == 2 ? std::min(rank, placement.ranks() - 1 - rank)
                                               : rank);
  }
  return groups;
}

void check_given(const Config& config, bool given, std::string_view key) {
  if (given) return;
  throw InputError(config.layers->where,
                   fmt::format("layers: {} is missing; the schedule {} has a backward, so give it "
                               "for each layer, or use schedule: forward-only",
                               key, config.schedule.value));
}

// Of all microbatches, those that have a backward.
double trained_share(const Config& config) {
  if (!config.phases) return 1;
  double trained = 0;
  for (const Phase& phase : config.phases->value) trained += phase.trains() ? phase.count : 0;
  return trained / config.microbatches.value;
}

// What each layer adds to its rank's load for an average microbatch, in ns; scaled down where they
// would sum to 2^62 or more.
std::vector<std::int64_t> layer_loads(const Config& config, bool forward_only) {
  const double forward = mean(config.factors.forward);
  const double trained = forward_only ? 0 : trained_share(config);
  const double input = trained * mean(config.factors.backward_input);
  const double weight = trained * mean(config.factors.backward_weight);
  std::vector<double> loads;
  const auto& layers = config.layers->list;
  for (const StageSum& layer : stage_sums(layers, Cut(layers.size(), 1))) {
    loads.push_back(forward * static_cast<double>(layer.cost.forward.count()) +
                    input * static_cast<double>(layer.cost.backward_input.count()) +
                    weight * static_cast<double>(layer.cost.backward_weight.count()));
  }
  constexpr auto kMost = static_cast<double>(kMaxTotal / 2);
  const double total = std::accumulate(loads.begin(), loads.end(), 0.0);
  const double scale = total < kMost ? 1 : kMost / total;
  std::vector<std::int64_t> rounded;
  for (const double load : loads) rounded.push_back(std::llround(load * scale));
  return rounded;
}

// The cut nearest to balance that was found with all on one rank that must be; else one that comes
// near.
Cut together(const Config& config, const PipelineShape& shape, const Cut& balanced) {
  constexpr std::int64_t kMost = 20'000;
  const CutProblem cuts = cut_problem(config, shape);
  const auto score = [&](const Cut& cut) {
    CutScore result;
    result.excess =
        static_cast<double>(distance_apart(config.keep_together->value, shape.placement, &cut));
    const auto loads = group_loads(cuts, cut);
    result.makespan = Time{*std::ranges::max_element(loads)};
    for (const std::int64_t load : loads) {
      result.unevenness += static_cast<double>(load) * static_cast<double>(load);
    }
    return result;
  };
  return refine_cut({balanced}, score, kMost).cut;
}

}  // namespace

CutProblem cut_problem(const Config& config, const PipelineShape& shape) {
  CutProblem problem;
  problem.load = layer_loads(config, shape.forward_only);
  problem.group = groups_of(shape.placement);
  return problem;
}

Cut layer_cut(const Config& config, const PipelineShape& shape) {
  const int stages = shape.placement.stages();
  if (config.layout) {
    const Cut& cut = config.layout->value;
    if (cut.size() == static_cast<std::size_t>(stages)) return cut;
    throw InputError(
        config.layout->where,
        fmt::format("layout: {} stages, but the schedule {} has {} on {} ranks; give "
                    "a layout of {} stages, or leave it out",
                    cut.size(), config.schedule.value, stages, shape.placement.ranks(), stages));
  }
  const auto balanced = balanced_cut(cut_problem(config, shape), kQuickBudget);
  if (!balanced) {
    throw InputError(config.layers->where,
                     fmt::format("layers: {} layers do not fill {} stages; lower pipeline.ranks or "
                                 "pipeline.chunks",
                                 config.layers->list.size(), stages));
  }
  return config.keep_together ? together(config, shape, balanced->cut) : balanced->cut;
}

Config with_stages(const Config& config, const PipelineShape& shape, const Cut& cut) {
  const Layers& layers = *config.layers;
  if (!shape.forward_only) {
    check_given(config, layers.has_backward_input, "backward_input");
    check_given(config, layers.has_backward_weight, "backward_weight");
  }
  const Bytes message = config.message ? config.message->values.front() : Bytes{};
  const std::vector<StageSum> sums = stage_sums(layers.list, cut, message);
  Config result = config;
  result.layers.reset();
  result.layout.reset();
  result.keep_together.reset();  // of layers, and checked
  const auto list = [&](std::string key, auto get) {
    return per_stage(config, sums, std::move(key), get);
  };
  result.forward = list("stages.forward", [](const StageSum& s) { return s.cost.forward; });
  if (layers.has_backward_input) {
    result.backward_input =
        list("stages.backward_input", [](const StageSum& s) { return s.cost.backward_input; });
  }
  if (layers.has_backward_weight) {
    result.backward_weight =
        list("stages.backward_weight", [](const StageSum& s) { return s.cost.backward_weight; });
  }
  result.activation = list("stages.activation", [](const StageSum& s) { return s.activation; });
  result.weight_activation =
      list("stages.weight_activation", [](const StageSum& s) { return s.kept_for_weight; });
  if (config.message || layers.has_message) {
    result.message = list("links.message", [](const StageSum& s) { return s.message; });
  }
  Located<std::vector<int>> frozen{{}, layers.where};
  for (std::size_t s = 0; s < sums.size(); ++s) {
    if (sums[s].frozen) frozen.value.push_back(static_cast<int>(s));
  }
  if (!frozen.value.empty()) result.frozen = std::move(frozen);
  result.static_memory = static_of_ranks(config, shape.placement, sums);
  return result;
}

}  // namespace counterflow
