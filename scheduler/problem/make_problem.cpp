#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scheduler/problem/config.h"
#include "scheduler/problem/copies.h"
#include "scheduler/problem/keep_together.h"
#include "scheduler/problem/make_keeping.h"
#include "scheduler/problem/make_optimizer.h"
#include "scheduler/problem/per_item.h"
#include "scheduler/problem/stages_from_layers.h"

namespace counterflow {
namespace {

using per_item::check_stage;
using per_item::expand;
using per_item::fail;
using per_item::index;

StageGraph make_graph(const Config& config, int stages) {
  if (!config.graph) return StageGraph::chain(stages);
  const SourceLocation& where = config.graph->where;
  std::vector<bool> connected(index(stages), stages == 1);
  for (const auto& [from, to] : config.graph->value) {
    check_stage(to, stages, where, "stages.graph");  // the higher end
    connected[index(from)] = connected[index(to)] = true;
  }
  const auto lone = std::find(connected.begin(), connected.end(), false);
  if (lone != connected.end()) {
    fail(where, "stages.graph",
         fmt::format("stage {} is on no edge; connect each of the {} stages",
                     lone - connected.begin(), stages));
  }
  return {stages, config.graph->value};
}

std::vector<std::uint8_t> make_frozen(const Config& config, int stages) {
  std::vector<std::uint8_t> frozen(index(stages), 0);
  if (!config.frozen) return frozen;
  for (const int stage : config.frozen->value) {
    check_stage(stage, stages, config.frozen->where, "stages.frozen");
    frozen[index(stage)] = 1;
  }
  return frozen;
}

// The costs of the backward, which a schedule without one need not name.
std::vector<Time> backward_cost(const Config& config, const std::optional<PerItem<Time>>& cost,
                                std::string_view key, const Problem& problem) {
  if (!cost && !problem.forward_only) {
    fail(config.stages_where, key,
         fmt::format("missing; the schedule {} has a backward, so give its cost, or use schedule: "
                     "forward-only",
                     config.schedule.value));
  }
  return expand(cost, problem.stages(), "stages");
}

// Work a stage does not need costs nothing, so that a full backward of a frozen stage is its I.
std::vector<StageCost> stage_costs(const Config& config, const Problem& problem) {
  const int stages = problem.stages();
  const auto forward = expand(config.forward, stages, "stages");
  const auto input = backward_cost(config, config.backward_input, "stages.backward_input", problem);
  const auto weight =
      backward_cost(config, config.backward_weight, "stages.backward_weight", problem);
  std::vector<StageCost> costs(index(stages));
  std::vector<bool> needs_input(index(stages));
  for (int s = 0; s < stages; ++s) {
    const bool needs_weight = problem.needs_backward_weight(s);
    const auto feeders = problem.graph.predecessors(s);
    needs_input[index(s)] =
        needs_weight || std::any_of(feeders.begin(), feeders.end(),
                                    [&](Stage feeder) { return needs_input[index(feeder)]; });
    costs[index(s)].forward = forward[index(s)];
    if (needs_input[index(s)]) costs[index(s)].backward_input = input[index(s)];
    if (needs_weight) costs[index(s)].backward_weight = weight[index(s)];
  }
  return costs;
}

PairCosts pair_costs(const Config& config, int stages) {
  for (const auto& [forward, backward] : config.overlapped_stages) {
    check_stage(forward.value, stages, forward.where, "stages.overlapped");
    check_stage(backward.value, stages, backward.where, "stages.overlapped");
  }
  return config.overlapped.value;
}

std::vector<StageMemory> stage_memory(const Config& config, int stages) {
  const auto activation = expand(config.activation, stages, "stages");
  const auto kept =
      config.weight_activation ? expand(*config.weight_activation, stages, "stages") : activation;
  std::vector<StageMemory> memory(index(stages));
  for (int s = 0; s < stages; ++s) {
    if (kept[index(s)] > activation[index(s)]) {
      fail(config.weight_activation->where, "stages.weight_activation",
           fmt::format("{}B of stage {} is more than its activation of {}B, of which it is a part; "
                       "lower it",
                       kept[index(s)].value, s, activation[index(s)].value));
    }
    memory[index(s)] = {activation[index(s)], kept[index(s)]};
  }
  return memory;
}

MemoryLimits memory_limits(const Config& config, int ranks) {
  MemoryLimits limits;
  if (config.memory_limit) limits.bytes = expand(*config.memory_limit, ranks, "ranks");
  if (config.activation_limit)
    limits.activations = expand(*config.activation_limit, ranks, "ranks");
  limits.static_memory = expand(config.static_memory, ranks, "ranks");
  return limits;
}

// ---- how messages travel ----------------------------------------------------------------------

Problem compressed(const Config& config, Problem problem) {
  if (!config.compression) return problem;
  for (std::size_t s = 0; s < problem.message.size(); ++s) {
    if (problem.message[s].value % 4 == 0) continue;
    fail(
        config.compression->where, "links.compress",
        fmt::format("the message of stage {} has {} B, which are no whole number of FP32 elements; "
                    "give it a multiple of 4 B",
                    s, problem.message[s].value));
  }
  problem.compression = config.compression->value;
  return with_packing_costs(std::move(problem));
}

// ---- sums stay in range ---------------------------------------------------------------------

void check_size(const Config& config, int stages) {
  if (stages > kMaxStages) {
    fail(config.ranks.where, "pipeline.ranks",
         fmt::format("{} ranks have {} stages; at most {} are possible, so lower it",
                     config.ranks.value, stages, kMaxStages));
  }
  const std::int64_t total = std::int64_t{stages} * config.microbatches.value;
  if (total > kMaxStageMicrobatches) {
    fail(config.microbatches.where, config.phases ? "pipeline.phases" : "pipeline.microbatches",
         fmt::format("{} microbatches on {} stages are {} forwards; at most {} are possible, so "
                     "lower one of them",
                     config.microbatches.value, stages, total, kMaxStageMicrobatches));
  }
}

// How often the cost of a stage counts in the whole run.
double total_factor(const std::vector<double>& factors, int microbatches) {
  return std::accumulate(factors.begin(), factors.end(), factors.empty() ? microbatches : 0.0);
}

double largest_factor(const MicrobatchFactors& factors) {
  double largest = 1;
  for (const auto* kind : {&factors.forward, &factors.backward_input, &factors.backward_weight}) {
    for (const double factor : *kind) largest = std::max(largest, factor);
  }
  return largest;
}

double count(Time time) {
  return static_cast<double>(time.count());
}

// The longest a stage takes to move an activation out and to bring it back.
Time longest_moves(const Problem& problem, Stage stage) {
  Time longest = problem.keeping_of(stage).store + problem.keeping_of(stage).restore;
  if (problem.keeping_options.empty()) return longest;
  for (const Keeping& option : problem.keeping_options[index(stage)]) {
    longest = std::max(longest, option.store + option.restore);
  }
  return longest;
}

// Nanoseconds of all reductions and steps one after the other.
double optimizer_time(const Problem& problem) {
  if (!problem.optimizer) return 0;
  double total = 0;
  for (Stage s = 0; s < problem.stages(); ++s) {
    // Every bucket goes round a ring twice.
    const double whole = count(problem.links.longest_hop(problem.optimizer->gradients[index(s)]));
    const double empty = count(problem.links.longest_hop(Bytes{0}));
    total += count(problem.optimizer->step[index(s)]) +
             2.0 * problem.ranks() * data_parallel(problem) *
                 (whole + static_cast<double>(kMaxBuckets) * empty);
    if (problem.optimizer->validates()) total += count(problem.optimizer->validate[index(s)]);
    if (!problem.optimizer->sharding) continue;
    // And is gathered before each of the forwards and backwards at most.
    const double gather =
        count(problem.links.longest_hop(problem.optimizer->sharding->parameters[index(s)])) +
        static_cast<double>(kMaxBuckets) * empty;
    total += 4.0 * problem.microbatches * problem.ranks() * data_parallel(problem) * gather;
  }
  return total;
}

// Nanoseconds of every op, every pair and every message both ways, one after the other, each
// `jitter` times as long as given.
double total_time(const Problem& problem, double jitter) {
  const MicrobatchFactors& factors = problem.costs.factors();
  const double forward = total_factor(factors.forward, problem.microbatches);
  const double input = total_factor(factors.backward_input, problem.microbatches);
  const double weight = total_factor(factors.backward_weight, problem.microbatches);
  const double moved = total_factor(factors.activation, problem.microbatches);
  const double pair = count(problem.costs.pairs().largest()) * largest_factor(factors);
  double total = pair * problem.microbatches * problem.stages() + optimizer_time(problem);
  for (Stage s = 0; s < problem.stages(); ++s) {
    const StageCost& cost = problem.costs.stages()[index(s)];
    const Bytes size = std::max(problem.wire_size(s, s + 1), problem.wire_size(s + 1, s));
    const double hop = count(problem.links.longest_hop(size));
    const auto messages = 2.0 * static_cast<double>(problem.graph.successors(s).size());
    total += std::max(forward, moved) * count(longest_moves(problem, s));
    total += forward * count(cost.forward) + input * count(cost.backward_input) +
             weight * count(cost.backward_weight) + messages * problem.microbatches * hop;
  }
  return total * jitter * data_parallel(problem);
}

// Bytes of every activation and every message of the run, beside the largest static memory.
double total_bytes(const Problem& problem) {
  const double activations = total_factor(problem.costs.factors().activation, problem.microbatches);
  double total = 0;
  for (const Bytes fixed : problem.limits.static_memory) {
    total = std::max(total, static_cast<double>(fixed.value));
  }
  for (Stage s = 0; s < problem.stages(); ++s) {
    const auto messages = 2.0 * static_cast<double>(problem.graph.successors(s).size());
    total += activations * static_cast<double>(problem.memory[index(s)].activation.value) +
             messages * problem.microbatches * static_cast<double>(problem.message[index(s)].value);
    if (problem.optimizer) {
      total += static_cast<double>(problem.optimizer->gradients[index(s)].value);
      if (problem.optimizer->validates()) {
        total += static_cast<double>(problem.optimizer->snapshot[index(s)].value);
      }
      if (problem.optimizer->sharding) {
        total += static_cast<double>(problem.optimizer->sharding->parameters[index(s)].value);
      }
    }
  }
  return total * data_parallel(problem);
}

void check_totals(const Config& config, const Problem& problem) {
  constexpr auto kLimit = static_cast<double>(kMaxTotal);
  const double jitter = config.jitter ? largest_factor(*config.jitter) : 1;
  const auto check = [&](auto total, std::string_view rule) {
    if (total(problem) < kLimit) return;
    Problem without = problem;
    without.optimizer.reset();
    if (total(without) < kLimit) fail(config.optimizer->where, "optimizer", rule);
    fail(config.stages_where, "stages", rule);
  };
  check([&](const Problem& each) { return total_time(each, jitter); },
        "the durations of the whole run sum to 2^62 ns (146 years) or more; check their units");
  check(total_bytes,
        "the sizes of the whole run sum to 2^62 bytes (4 EiB) or more; check their units");
}

}  // namespace

Problem make_problem(const Config& config, const PipelineShape& asked) {
  PipelineShape shape = asked;
  if (config.phases) {
    shape.forward_only = std::ranges::none_of(config.phases->value, &Phase::trains);
  }
  const int stages = shape.placement.stages();
  const int ranks = shape.placement.ranks();
  check_size(config, stages);
  check_copies(config, stages);
  if (config.layers) {
    const Cut cut = layer_cut(config, shape);
    check_together(config, shape.placement, &cut);
    return make_problem(with_stages(config, shape, cut), shape);
  }
  check_together(config, shape.placement, nullptr);
  Problem problem;
  problem.placement = shape.placement;
  problem.graph = make_graph(config, stages);
  problem.microbatches = config.microbatches.value;
  problem.split_backward = config.split_backward;
  problem.forward_only = shape.forward_only;
  if (config.phases) problem.phases = config.phases->value;
  // A single pass to train is what there is without phases.
  if (problem.phases.size() == 1 && !problem.forward_only) problem.phases.clear();
  problem.group_size = config.group_size ? config.group_size->value : 0;
  problem.frozen = make_frozen(config, stages);
  problem.costs = Costs(stage_costs(config, problem), config.factors, pair_costs(config, stages));
  problem.memory = stage_memory(config, stages);
  add_keeping(config, problem);
  problem.links = config.links;
  problem.message = expand(config.message, stages, "stages");
  problem.limits = memory_limits(config, ranks);
  if (config.optimizer) problem.optimizer = make_optimizer(*config.optimizer, stages);
  problem = compressed(config, std::move(problem));
  check_totals(config, problem);
  shard_static_memory(problem);
  return problem;
}

}  // namespace counterflow
