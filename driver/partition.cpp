#include "driver/partition.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "driver/auto_schedule.h"
#include "driver/fault_text.h"
#include "driver/pipeline.h"
#include "scheduler/graph/evaluate.h"
#include "scheduler/partition/balance.h"
#include "scheduler/partition/held.h"
#include "scheduler/partition/refine.h"
#include "scheduler/problem/keep_together.h"
#include "scheduler/problem/stages_from_layers.h"
#include "scheduler/verify/verify.h"
#include "schedules/registry.h"

namespace counterflow {
namespace {

// The ops of all cuts simulated by default, about two seconds' worth.
constexpr std::int64_t kDefaultOps = 100'000'000;
constexpr std::int64_t kFewestCuts = 64;
// How many of the maps and families that look best at their starts are refined.
constexpr std::size_t kFinalists = 3;

PipelineShape shape_of_plan(const Plan& plan) {
  return {.placement = plan.problem.placement, .forward_only = plan.problem.forward_only};
}

Config with_layout(Config config, const Cut& cut) {
  config.layout = Located<Cut>{cut, config.layers->where};
  return config;
}

// Stages as layers of their own, so that there is one cut: its balance is what can be said.
Config stages_as_layers(const Plan& plan) {
  const Problem& problem = plan.problem;
  Config config = plan.config;
  Layers layers;
  layers.where = config.stages_where;
  layers.has_backward_input = layers.has_backward_weight = true;
  layers.has_activation = config.activation.has_value();
  layers.has_message = config.message.has_value();
  const std::vector<PackingCost> packing = packing_costs(problem);
  for (Stage s = 0; s < problem.stages(); ++s) {
    const auto stage = static_cast<std::size_t>(s);
    Layer layer;
    layer.kind = "stage";
    layer.letter = 's';
    layer.role = LayerRole::other;
    layer.cost = problem.costs.stages()[stage];
    layer.cost.forward -= packing[stage].forward;  // made anew for each cut
    layer.cost.backward_input -= packing[stage].gradient;
    layer.activation = problem.memory[stage].activation;
    layer.kept_for_weight = problem.memory[stage].kept_for_weight;
    layer.message = problem.message[stage];
    layer.frozen = problem.frozen[stage] != 0;
    layers.list.push_back(std::move(layer));
  }
  config.layers = std::move(layers);
  config.message.reset();
  return config;
}

// The question.
struct Asked {
  Config config;
  std::filesystem::path folder;
  std::span<const Semantics> semantics;
};

// A map with a schedule on it, and what is known of cuts for it.
struct Candidate {
  Plan plan;
  CutProblem cuts;
  BalancedCut balanced;
  RefinedCut best;
};

// How a cut does on the candidate's map with its schedule.
class Scorer {
 public:
  explicit Scorer(const Candidate& candidate)
      : plan_(candidate.plan), cuts_(candidate.cuts), shape_(shape_of_plan(candidate.plan)) {
    const auto& layers = plan_.config.layers->list;
    frozen_ =
        std::any_of(layers.begin(), layers.end(), [](const Layer& layer) { return layer.frozen; });
  }

  CutScore operator()(const Cut& cut) const {
    // Further than any memory could be exceeded.
    if (const std::int64_t apart = distance_of(cut); apart > 0) {
      return {.excess = 0x1p100 * static_cast<double>(apart)};
    }
    const Problem problem = make_problem(with_layout(plan_.config, cut), shape_);
    // Which ops there are depends on the cut only where a whole stage may be frozen.
    if (frozen_ && plan_.family != nullptr)
      return score(problem, generate(*plan_.family, problem), cut);
    return score(problem, plan_.schedule, cut);
  }

 private:
  [[nodiscard]] std::int64_t distance_of(const Cut& cut) const {
    const auto& together = plan_.config.keep_together;
    return together ? distance_apart(together->value, shape_.placement, &cut) : 0;
  }

  CutScore score(const Problem& problem, const Schedule& schedule, const Cut& cut) const {
    CutScore score;
    score.makespan = Evaluator(problem).makespan(schedule);
    if (score.makespan < Time{0}) return {.excess = std::numeric_limits<double>::infinity()};
    if (!problem.limits.bytes.empty()) {
      const std::vector<std::int64_t> peaks = peak_bytes(problem, schedule);
      for (std::size_t rank = 0; rank < peaks.size(); ++rank) {
        const std::int64_t over = peaks[rank] - problem.limits.bytes[rank].value;
        if (over > 0) score.excess += static_cast<double>(over);
      }
    }
    for (const std::int64_t load : group_loads(cuts_, cut)) {
      score.unevenness += static_cast<double>(load) * static_cast<double>(load);
    }
    return score;
  }

  const Plan& plan_;
  const CutProblem& cuts_;
  PipelineShape shape_;
  bool frozen_ = false;
};

// The limits of the ranks as room for the stages: what a stage holds is bounded by its own peak.
CutProblem with_memory(CutProblem cuts, const Plan& plan) {
  const Problem& problem = plan.problem;
  if (problem.limits.bytes.empty() || problem.placement.replicas() > 1) return cuts;
  for (const Layer& layer : plan.config.layers->list) {
    cuts.fixed.push_back(layer.fixed.value);
    cuts.held.push_back(layer.activation.value);
  }
  cuts.copies = peak_copies(problem, plan.schedule);
  const auto& own = plan.config.static_memory;
  for (std::size_t rank = 0; rank < problem.limits.bytes.size(); ++rank) {
    const std::int64_t fixed = !own ? 0 : own->values[own->is_list ? rank : 0].value;
    cuts.room.push_back(problem.limits.bytes[rank].value - fixed);
  }
  return cuts;
}

std::vector<Cut> starts(const Candidate& candidate, const Config& asked) {
  const std::vector<Layer>& layers = asked.layers->list;
  std::vector<Cut> all{candidate.balanced.cut};
  if (asked.keep_together) {
    all.push_back(layer_cut(candidate.plan.config, shape_of_plan(candidate.plan)));
  }
  const CutProblem limited = with_memory(candidate.cuts, candidate.plan);
  if (!limited.room.empty()) {
    if (const auto fitting = balanced_cut(limited, kQuickBudget)) all.push_back(fitting->cut);
  }
  all.push_back(even_cut(layers, candidate.plan.problem.stages()));
  if (asked.layout) all.push_back(asked.layout->value);
  // One that leaves a stage empty is no start: no move would mend it on purpose.
  const auto has_empty = [](const Cut& cut) {
    return std::find(cut.begin(), cut.end(), 0) != cut.end();
  };
  all.erase(std::remove_if(all.begin(), all.end(), has_empty), all.end());
  return all;
}

Candidate make_candidate(const Asked& asked, Config config) {
  config.layout.reset();
  Candidate candidate;
  candidate.plan = make_plan(std::move(config), asked.folder);
  candidate.cuts = cut_problem(candidate.plan.config, shape_of_plan(candidate.plan));
  // There is one: the plan's own cut came from the same problem.
  candidate.balanced = *balanced_cut(candidate.cuts, kQuickBudget);
  candidate.best = refine_cut(starts(candidate, asked.config), Scorer(candidate), 0);
  return candidate;
}

// The maps to try where schedule `auto` leaves them open.
std::vector<Config> open_maps(const Config& asked) {
  std::vector<Config> maps;
  const auto add = [&](PlacementKind kind, int chunks) {
    if (asked.chunks && asked.chunks->value != chunks) return;
    Config map = asked;
    map.placement = {{kind, {}}, asked.schedule.where};
    map.chunks = {chunks, asked.schedule.where};
    maps.push_back(std::move(map));
  };
  const int most = std::max(2, asked.chunks ? asked.chunks->value : 0);
  for (int chunks = 1; chunks <= most; ++chunks) add(PlacementKind::loop, chunks);
  add(PlacementKind::v, 2);
  return maps;
}

// The families that schedule `auto` tries: those that train, and on a list those whose map it is.
std::vector<const Family*> families_for(const Config& config) {
  const bool is_list = config.placement && config.placement->value.kind == PlacementKind::list;
  std::optional<Placement> listed;
  if (is_list) {
    Config uncut = config;
    uncut.layout.reset();
    listed = make_problem_on_placement(uncut).placement;
  }
  std::vector<const Family*> all;
  for (const Family& family : families()) {
    if (family.forward_only || (listed && !takes_map(family, *listed))) continue;
    all.push_back(&family);
  }
  if (!all.empty()) return all;
  throw InputError(
      config.placement->where,
      "pipeline.placement: no schedule family takes this list as its map, and schedule auto tries "
      "the families; leave pipeline.placement out, or give as pipeline.schedule an order of this "
      "map, such as the schedule.csv that `counterflow search -o DIR` writes");
}

std::vector<Candidate> candidates(const Asked& asked) {
  const Config& config = asked.config;
  std::vector<Candidate> all;
  if (config.schedule.value != "auto") {
    all.push_back(make_candidate(asked, config));
    return all;
  }
  const std::vector<const Family*> families = families_for(config);
  std::string refusal;
  for (Config& map : config.placement ? std::vector<Config>{config} : open_maps(config)) {
    for (const Family* family : families) {
      map.schedule.value = family->name;
      try {
        all.push_back(make_candidate(asked, map));
      } catch (const InputError& error) {
        if (refusal.empty()) refusal = error.what();
      }
    }
  }
  if (all.empty()) throw InputError(refusal);
  // How many activations a schedule holds does not depend on the cut.
  const auto holds_too_many = [](const Candidate& candidate) {
    Problem counted = candidate.plan.problem;
    counted.limits.bytes.clear();
    return !verify(counted, candidate.plan.schedule).empty();
  };
  if (!all.front().plan.problem.limits.activations.empty() &&
      !std::ranges::all_of(all, holds_too_many)) {
    std::erase_if(all, holds_too_many);
  }
  return all;
}

// Refines those that look best, each with an equal part of the cuts.
void refine_best(std::vector<Candidate>& all, const Config& asked, std::int64_t iterations,
                 std::uint64_t seed) {
  std::stable_sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) {
    return a.best.score < b.best.score;
  });
  if (all.size() > kFinalists) all.resize(kFinalists);
  for (Candidate& candidate : all) {
    candidate.balanced = *balanced_cut(candidate.cuts, kThoroughBudget);
    const auto ops = static_cast<std::int64_t>(candidate.plan.schedule.size());
    std::int64_t cuts = iterations > 0
                            ? iterations
                            : std::max(kFewestCuts, kDefaultOps / std::max<std::int64_t>(1, ops));
    cuts = std::max<std::int64_t>(1, cuts / static_cast<std::int64_t>(all.size()));
    std::vector<Cut> from = starts(candidate, asked);
    from.push_back(candidate.best.cut);
    candidate.best = refine_cut(from, Scorer(candidate), cuts, seed);
  }
  std::stable_sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) {
    return a.best.score < b.best.score;
  });
}

std::int64_t largest(const std::vector<std::int64_t>& loads) {
  return *std::max_element(loads.begin(), loads.end());
}

// The load of each rank: a group's, or half of it where two ranks share it.
std::vector<std::int64_t> loads_of_ranks(const Candidate& candidate, const Cut& cut) {
  const std::vector<std::int64_t> groups = group_loads(candidate.cuts, cut);
  const Placement& placement = candidate.plan.problem.placement;
  if (placement.replicas() == 1) return groups;
  std::vector<std::int64_t> loads;
  for (Rank rank = 0; rank < placement.ranks(); ++rank) {
    const Rank group = std::min(rank, placement.ranks() - 1 - rank);
    loads.push_back(groups[static_cast<std::size_t>(group)] / 2);
  }
  return loads;
}

// A cut carried through the whole pipeline: checked and simulated under the config's machine.
CutRun run_cut(const Asked& asked, const Candidate& candidate, std::string name, const Cut& cut) {
  CutRun result;
  result.name = std::move(name);
  result.cut = cut;
  result.bottleneck = largest(loads_of_ranks(candidate, cut));
  if (const auto& together = candidate.plan.config.keep_together) {
    result.fault = apart_text(together->value, candidate.plan.problem.placement, &cut);
    if (!result.fault.empty()) return result;
  }
  try {
    const Plan plan = make_plan(with_layout(candidate.plan.config, cut), asked.folder);
    Verdict verdict = check(plan, asked.semantics);
    if (verdict.ok()) {
      result.report = run(plan, std::move(*verdict.lowered)).report;
    } else {
      result.fault = faults_summary(plan, verdict);
    }
  } catch (const InfeasibleError& error) {
    result.fault = error.what();
  }
  return result;
}

}  // namespace

Partition find_partition(const Config& config, const std::filesystem::path& folder,
                         std::span<const Semantics> semantics, std::int64_t iterations,
                         std::uint64_t seed) {
  const Asked asked{.config = config.layers ? config : stages_as_layers(make_plan(config, folder)),
                    .folder = folder,
                    .semantics = semantics};
  const std::vector<Layer>& layers = asked.config.layers->list;
  std::vector<Candidate> all = candidates(asked);
  refine_best(all, asked.config, iterations, seed);
  const Candidate& best = all.front();
  const Cut& cut = best.best.cut;
  Partition result;
  result.asked = asked.config;
  for (const Candidate& each : all) result.scored += each.best.scored;
  result.found = run_cut(asked, best, "found", cut);
  if (!result.found.report) {
    throw InfeasibleError(
        fmt::format("no cut of the layers was found that fits; the best, \"{}\": {}",
                    layout_string(letters_of(layers, cut)), result.found.fault));
  }
  const auto compare = [&](std::string name, const Cut& other) {
    result.others.push_back(run_cut(asked, best, std::move(name), other));
  };
  compare("even", even_cut(layers, best.plan.problem.stages()));
  if (config.layout && config.layout->value.size() == cut.size()) {
    compare("given", config.layout->value);
  }
  compare("balanced", best.balanced.cut);
  result.rank_loads = loads_of_ranks(best, cut);
  result.complete = best.best.complete;
  const bool doubled = best.plan.problem.placement.replicas() > 1;
  result.bottleneck_bound = best.balanced.lower_bound / (doubled ? 2 : 1);
  result.plan = make_plan(with_layout(best.plan.config, cut), folder);
  return result;
}

}  // namespace counterflow
