#include "driver/partition_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <numeric>

#include "report/format.h"
#include "scheduler/problem/stages_from_layers.h"

namespace counterflow {
namespace {

using Json = nlohmann::ordered_json;

std::int64_t sum(const std::vector<std::int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::int64_t{0});
}

// The mean load of the ranks beside the largest: 1 if all have the same.
double balance(const Partition& partition, std::int64_t bottleneck) {
  if (bottleneck == 0) return 1;
  return static_cast<double>(sum(partition.rank_loads)) /
         static_cast<double>(partition.rank_loads.size()) / static_cast<double>(bottleneck);
}

// One stage with its layers [first, end).
struct StageRow {
  Stage stage = 0;
  std::size_t first = 0;
  std::size_t end = 0;
  std::string letters;
  StageCost cost;
  StageMemory memory;
  double share = 0;  // of the load of the whole model
};

std::vector<StageRow> stage_rows(const Partition& partition) {
  const Problem& problem = partition.plan.problem;
  const Cut& cut = partition.found.cut;
  const StageLetters letters = letters_of(partition.asked.layers->list, cut);
  const CutProblem loads =
      cut_problem(partition.plan.config, {problem.placement, problem.forward_only});
  const auto whole = static_cast<double>(std::max<std::int64_t>(1, sum(loads.load)));
  std::vector<StageRow> rows;
  std::size_t layer = 0;
  for (std::size_t s = 0; s < cut.size(); ++s) {
    StageRow row;
    row.stage = static_cast<Stage>(s);
    row.first = layer;
    row.end = layer + static_cast<std::size_t>(cut[s]);
    row.letters = letters[s];
    row.cost = problem.costs.stages()[s];
    row.memory = problem.memory[s];
    for (; layer < row.end; ++layer) row.share += static_cast<double>(loads.load[layer]) / whole;
    rows.push_back(std::move(row));
  }
  return rows;
}

Json ranks_of(const Placement& placement, Stage stage) {
  Json ranks = Json::array();
  for (int replica = 0; replica < placement.replicas(); ++replica) {
    ranks.push_back(placement.rank_of(stage, replica));
  }
  return ranks;
}

Json stages_json(const Partition& partition) {
  const Placement& placement = partition.plan.problem.placement;
  Json stages = Json::array();
  for (const StageRow& row : stage_rows(partition)) {
    Json one{{"stage", row.stage}, {"rank", placement.rank_of(row.stage)}};
    if (placement.replicas() > 1) one["ranks"] = ranks_of(placement, row.stage);
    one["layers"] = Json::array({row.first, row.end});
    one["letters"] = row.letters;
    one["forward_ns"] = row.cost.forward.count();
    one["backward_input_ns"] = row.cost.backward_input.count();
    one["backward_weight_ns"] = row.cost.backward_weight.count();
    one["load_share"] = row.share;
    one["activation_bytes"] = row.memory.activation.value;
    stages.push_back(std::move(one));
  }
  return stages;
}

Json ranks_json(const Partition& partition) {
  const Problem& problem = partition.plan.problem;
  Json ranks = Json::array();
  for (std::size_t rank = 0; rank < partition.rank_loads.size(); ++rank) {
    Json one{{"load_ns", partition.rank_loads[rank]},
             {"peak_memory_bytes", partition.found.report->per_rank[rank].peak_memory.value}};
    if (!problem.limits.bytes.empty()) {
      one["memory_limit_bytes"] = problem.limits.bytes[rank].value;
    }
    ranks.push_back(std::move(one));
  }
  return ranks;
}

Json cut_json(const Partition& partition, const CutRun& cut) {
  Json one{{"name", cut.name},
           {"layout", layout_of(partition, cut.cut)},
           {"layers_per_stage", cut.cut},
           {"bottleneck_ns", cut.bottleneck},
           {"balance", balance(partition, cut.bottleneck)}};
  one["makespan_ns"] = cut.report ? Json(cut.report->makespan.count()) : Json(nullptr);
  one["bubble_fraction"] = cut.report ? Json(cut.report->bubble_fraction) : Json(nullptr);
  if (!cut.report) one["fault"] = cut.fault;
  return one;
}

std::string rank_text(const Placement& placement, Stage stage) {
  std::string text = fmt::format("{}", placement.rank_of(stage));
  if (placement.replicas() > 1) text += fmt::format(", {}", placement.rank_of(stage, 1));
  return text;
}

std::string stages_table(const Partition& partition) {
  const Problem& problem = partition.plan.problem;
  const bool memory = partition.plan.config.layers->has_activation;
  std::string text = fmt::format("{:>5} {:>7} {:>11}  {:<14} {:>10} {:>10} {:>10} {:>8}", "stage",
                                 "rank", "layers", "", "F", "I", "W", "load");
  text += memory ? fmt::format(" {:>12}\n", "activation") : "\n";
  for (const StageRow& row : stage_rows(partition)) {
    const std::string layers =
        row.end > row.first ? fmt::format("{}-{}", row.first, row.end - 1) : "-";
    text +=
        fmt::format("{:>5} {:>7} {:>11}  {:<14} {:>10} {:>10} {:>10} {:>8}", row.stage,
                    rank_text(problem.placement, row.stage), layers, layout_string({row.letters}),
                    readable_time(row.cost.forward), readable_time(row.cost.backward_input),
                    readable_time(row.cost.backward_weight), readable_share(row.share));
    text += memory ? fmt::format(" {:>12}\n", readable_bytes(row.memory.activation)) : "\n";
  }
  return text;
}

std::string ranks_table(const Partition& partition) {
  const Problem& problem = partition.plan.problem;
  const bool limited = !problem.limits.bytes.empty();
  std::string text = fmt::format("{:>5} {:>12} {:>14}", "rank", "load", "peak memory");
  text += limited ? fmt::format(" {:>12}\n", "limit") : "\n";
  for (std::size_t rank = 0; rank < partition.rank_loads.size(); ++rank) {
    text +=
        fmt::format("{:>5} {:>12} {:>14}", rank, readable_time(Time{partition.rank_loads[rank]}),
                    readable_bytes(partition.found.report->per_rank[rank].peak_memory));
    text += limited ? fmt::format(" {:>12}\n", readable_bytes(problem.limits.bytes[rank])) : "\n";
  }
  return text;
}

std::string cut_line(const Partition& partition, const CutRun& cut) {
  return fmt::format(
      "{:<9} {:>12} {:>9} {:>12} {:>9}  {}\n", cut.name, readable_time(Time{cut.bottleneck}),
      readable_share(balance(partition, cut.bottleneck)),
      cut.report ? readable_time(cut.report->makespan) : "does not fit",
      cut.report ? readable_share(cut.report->bubble_fraction) : "", layout_of(partition, cut.cut));
}

// "61 layers, 59 of them decoder layers"
std::string model_text(const std::vector<Layer>& layers) {
  const auto decoders = std::count_if(layers.begin(), layers.end(), [](const Layer& layer) {
    return layer.role == LayerRole::decoder;
  });
  const std::string all = fmt::format("{} layer{}", layers.size(), layers.size() == 1 ? "" : "s");
  if (decoders == 0 || static_cast<std::size_t>(decoders) == layers.size()) return all;
  return fmt::format("{}, {} of them decoder layers,", all, decoders);
}

}  // namespace

std::string layout_of(const Partition& partition, const Cut& cut) {
  return layout_string(letters_of(partition.asked.layers->list, cut));
}

std::string partition_json(const Partition& partition) {
  const Problem& problem = partition.plan.problem;
  const Report& report = *partition.found.report;
  Json object{{"schema_version", 1},
              {"schedule", report.schedule},
              {"placement", name(problem.placement.kind())},
              {"ranks", problem.ranks()},
              {"stages", problem.stages()},
              {"microbatches", problem.microbatches},
              {"layers", partition.asked.layers->list.size()},
              {"execution", report.execution},
              {"layout", layout_of(partition, partition.found.cut)},
              {"layers_per_stage", partition.found.cut},
              {"makespan_ns", report.makespan.count()},
              {"bubble_fraction", report.bubble_fraction},
              {"lower_bound_ns", report.lower_bound.count()},
              {"steady_cycle_ns", partition.found.bottleneck},
              {"balance", balance(partition, partition.found.bottleneck)},
              {"bottleneck_ns", partition.found.bottleneck},
              {"bottleneck_lower_bound_ns", partition.bottleneck_bound},
              {"cuts_simulated", partition.scored},
              {"all_cuts_simulated", partition.complete}};
  object["per_stage"] = stages_json(partition);
  object["per_rank"] = ranks_json(partition);
  object["compared"] = Json::array();
  for (const CutRun& cut : partition.others) {
    object["compared"].push_back(cut_json(partition, cut));
  }
  object["notes"] = partition.plan.notes;
  object["warnings"] = partition.plan.warnings;
  return object.dump(1) + "\n";
}

std::string partition_table(const Partition& partition) {
  const Problem& problem = partition.plan.problem;
  const std::int64_t bottleneck = partition.found.bottleneck;
  std::string text = fmt::format("{} in {} stage{} on {} rank{}: {}, placement {}\n\n",
                                 model_text(partition.asked.layers->list), problem.stages(),
                                 problem.stages() == 1 ? "" : "s", problem.ranks(),
                                 problem.ranks() == 1 ? "" : "s", partition.found.report->schedule,
                                 name(problem.placement.kind()));
  text += stages_table(partition) + "\n" + ranks_table(partition) + "\n";
  text += fmt::format("{:<9} {:>12} {:>9} {:>12} {:>9}  {}\n", "cut", "steady cycle", "balance",
                      "makespan", "bubble", "layout");
  for (const CutRun& cut : partition.others) text += cut_line(partition, cut);
  text += cut_line(partition, partition.found);
  text += fmt::format("\nno cut has a steady cycle below {}{}; {} cuts were simulated{}\n",
                      readable_time(Time{partition.bottleneck_bound}),
                      partition.bottleneck_bound == bottleneck ? ", which this one has" : "",
                      partition.scored, partition.complete ? ", all there are on this map" : "");
  return text + fmt::format("\nlayout: \"{}\"\n", layout_of(partition, partition.found.cut));
}

}  // namespace counterflow
