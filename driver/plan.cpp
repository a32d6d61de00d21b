#include "driver/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include "driver/auto_schedule.h"
#include "driver/file_facts.h"
#include "driver/input_file.h"
#include "driver/suggestion.h"
#include "scheduler/problem/stages_from_layers.h"
#include "scheduler/problem/text.h"
#include "scheduler/verify/verify.h"
#include "schedules/registry.h"

namespace counterflow {
namespace {

constexpr std::string_view kFileSuffix = ".csv";

// Before anything is allocated for them; microbatches are counted with the problem.
void check_stages(const Config& config, std::int64_t stages) {
  if (stages <= kMaxStages) return;
  throw InputError(
      config.ranks.where,
      fmt::format("{} ranks with {} stages a rank are {} stages; the most is {}",
                  config.ranks.value, stages / config.ranks.value, stages, kMaxStages));
}

template <typename T>
void check_list(const std::optional<PerItem<T>>& item) {
  if (!item || !item->is_list || !item->values.empty()) return;
  throw InputError(item->where, fmt::format("{}: the list is empty; give one entry for each, or "
                                            "one value for all",
                                            item->key));
}

// No list of costs or sizes may be empty, whatever else the schedule has to say about its length.
void check_lists(const Config& config) {
  check_list(config.forward);
  check_list(config.backward_input);
  check_list(config.backward_weight);
  check_list(config.activation);
  check_list(config.weight_activation);
  check_list(config.message);
  check_list(config.memory_limit);
  check_list(config.activation_limit);
  check_list(config.static_memory);
}

// How many stages a rank the config asks for: its own number, or `otherwise`.
int chunks_of(const Config& config, int otherwise) {
  return config.chunks ? config.chunks->value : otherwise;
}

// The placement the config gives, else `kind`, with so many stages a rank.
Placement placement_of(const Config& config, PlacementKind kind, int chunks) {
  const int ranks = config.ranks.value;
  if (config.placement) kind = config.placement->value.kind;
  try {
    if (kind == PlacementKind::list) {
      const std::vector<Rank>& list = config.placement->value.list;
      return {ranks, list};
    }
    check_stages(config, std::int64_t{ranks} * chunks);
    return {kind, ranks, chunks};
  } catch (const std::invalid_argument& error) {
    throw InputError(config.placement ? config.placement->where : config.schedule.where,
                     fmt::format("pipeline.placement {}: {}", name(kind), error.what()));
  }
}

bool exists(PlacementKind kind, int ranks, int chunks) {
  try {
    return Placement(kind, ranks, chunks).ranks() == ranks;
  } catch (const std::invalid_argument&) {
    return false;
  }
}

// The placement the config gives, else the family's. One that does not even exist for the family's
// number of stages is of another kind: that, and not its own rule, is what to say.
Placement placement_for(const Config& config, const Family& family, int chunks) {
  check_stages(config, std::int64_t{config.ranks.value} * chunks);
  const PlacementKind kind = config.placement ? config.placement->value.kind : family.placement;
  if (kind != family.placement && kind != PlacementKind::list &&
      !exists(kind, config.ranks.value, chunks)) {
    throw InputError(
        config.placement->where,
        fmt::format("{} needs the {} placement, the config has {}: leave "
                    "pipeline.placement out, or set it to {}",
                    family.name, name(family.placement), name(kind), name(family.placement)));
  }
  return placement_of(config, family.placement, chunks);
}

void plan_from_file(Plan& plan, const std::filesystem::path& path) {
  const Config& config = plan.config;
  const SourceLocation& where = config.schedule.where;
  ScheduleFile file = parse_schedule(read_input(path.string(), where), path.string());
  if (!config.placement) {
    throw InputError(
        where,
        fmt::format("the schedule file '{}' does not say which rank holds which "
                    "stage: give pipeline.placement (loop, v, wave, "
                    "bidirectional or a list), for example --set "
                    "pipeline.placement={}",
                    path.string(), name(likely_placement(file).value_or(PlacementKind::loop))));
  }
  const int ranks = config.ranks.value;
  if (config.all_ranks() != ranks &&
      file.rows.size() == static_cast<std::size_t>(config.all_ranks())) {
    throw InputError(where, fmt::format("'{}' has the {} rows of {} pipelines side by side; a "
                                        "schedule is of one, such as the schedule.csv written "
                                        "beside it",
                                        path.string(), file.rows.size(),
                                        config.optimizer->data_parallel->value));
  }
  if (file.rows.size() != static_cast<std::size_t>(ranks)) {
    throw InputError(
        config.ranks.where,
        fmt::format("pipeline.ranks is {}, but '{}' has {} rows, one a rank; make them "
                    "equal",
                    ranks, path.string(), file.rows.size()));
  }
  const PlacementKind kind = config.placement->value.kind;
  const int chunks = chunks_of(config, chunks_in(file, ranks, kind));
  plan.problem = make_problem(config, {.placement = placement_of(config, kind, chunks),
                                       .forward_only = is_forward_only(file)});
  // As written, so that a result does not depend on where it was made.
  file.name = config.schedule.value;
  check_split(config, plan.problem, file);
  if (!config.phases && plan.problem.forward_only &&
      (config.backward_input || config.backward_weight)) {
    plan.warnings.push_back(
        fmt::format("{} has no backward, so it is taken as forward-only; the "
                    "costs of the backward are not used",
                    file.name));
  }
  plan.schedule = file.compute();
  plan.problem = with_keeping_of(std::move(plan.problem), plan.schedule);
  const std::vector<std::string> said = advice(file);
  plan.warnings.insert(plan.warnings.end(), said.begin(), said.end());
  plan.file = std::move(file);
}

// Stages a rank where the config does not say. A list of costs for more stages than the family has
// speaks of a wrong family rather than of a wrong list.
int implied_chunks(const Config& config, const Family& family) {
  const int ranks = config.ranks.value;
  if (family.takes_chunks || config.placement || !config.forward || !config.forward->is_list) {
    return family.default_chunks;
  }
  const auto entries = static_cast<int>(config.forward->values.size());
  return entries % ranks == 0 ? entries / ranks : family.default_chunks;
}

void plan_from_family(Plan& plan, const Family& family) {
  const Config& config = plan.config;
  const int chunks = chunks_of(config, implied_chunks(config, family));
  const SourceLocation& where = config.schedule.where;
  // First of all, so that a shape the family cannot have is not taken for a wrong placement.
  for (const int microbatches : trained_microbatches(config)) {
    const Shape shape{.ranks = config.ranks.value,
                      .microbatches = microbatches,
                      .chunks = chunks,
                      .group_size = config.group_size ? config.group_size->value : 0};
    if (const auto reason = refusal(family, shape)) throw InputError(where, *reason);
  }
  plan.problem = make_problem(config, {.placement = placement_for(config, family, chunks),
                                       .forward_only = family.forward_only});
  plan.family = &family;
  try {
    plan.schedule = generate(family, plan.problem);
  } catch (const InputError& error) {
    throw InputError(where, error.what());
  }
}

AutoChoice choose_automatically(const Plan& plan) {
  try {
    return choose_schedule(plan.problem);
  } catch (const InputError& error) {
    throw InputError(plan.config.schedule.where,
                     fmt::format("schedule auto: no family fits, and {}", error.what()));
  }
}

void plan_automatically(Plan& plan) {
  plan.problem = make_problem_on_placement(plan.config);
  AutoChoice choice = choose_automatically(plan);
  plan.family = choice.family;
  plan.schedule = std::move(choice.schedule);
  plan.problem = with_keeping(std::move(plan.problem), std::move(choice.keeping));
  plan.notes.push_back(std::move(choice.note));
}

// A group size that nothing reads is said, not refused: one config serves several schedules.
void note_group_size(Plan& plan) {
  if (!plan.config.group_size) return;
  if (plan.family != nullptr && plan.family->takes_groups) return;
  plan.warnings.push_back(
      fmt::format("pipeline.group_size {} is not used: {} has no groups of "
                  "microbatches",
                  plan.config.group_size->value, plan.schedule.name));
}

// A file that brings its communication is run as it stands, and says itself what follows the last
// gradient.
void drop_optimizer(Plan& plan) {
  if (!plan.problem.optimizer || !plan.brings_communication()) return;
  plan.problem.optimizer.reset();
  plan.warnings.push_back(fmt::format(
      "the optimizer section is not used: {} brings its own communication", plan.schedule.name));
}

// How layers became stages, and what looks wrong about it.
void note_layers(Plan& plan) {
  const Config& config = plan.config;
  if (!config.layers) return;
  const Cut cut = layer_cut(
      config, {.placement = plan.problem.placement, .forward_only = plan.problem.forward_only});
  const std::vector<Layer>& layers = config.layers->list;
  if (!config.layout) {
    plan.notes.push_back(fmt::format(
        "no layout: the layers are cut by their load as \"{}\"; `counterflow partition` finds the "
        "cut that is fastest",
        layout_string(letters_of(layers, cut))));
  }
  const std::vector<std::string> said = advice(layers, cut);
  plan.warnings.insert(plan.warnings.end(), said.begin(), said.end());
}

}  // namespace

std::vector<int> trained_microbatches(const Config& config) {
  if (!config.phases) return {config.microbatches.value};
  std::vector<int> counts;
  for (const Phase& phase : config.phases->value) {
    if (phase.trains()) counts.push_back(phase.count);
  }
  return counts;
}

bool is_schedule_file(std::string_view schedule) {
  return schedule.ends_with(kFileSuffix);
}

std::string unknown_schedule(std::string_view name) {
  const std::string guess = did_you_mean(name, {nearest_family(name)});
  if (!guess.empty()) {
    return fmt::format(
        "unknown schedule '{}'{} `counterflow schedules` lists the families; a file "
        "ends in .csv",
        shown(name), guess);
  }
  std::vector<std::string_view> known;
  for (const Family& family : families()) known.push_back(family.name);
  return fmt::format("unknown schedule '{}'; there are {}, auto, and files that end in .csv",
                     shown(name), fmt::join(known, ", "));
}

Plan make_plan(Config config, const std::filesystem::path& folder) {
  Plan plan;
  plan.config = std::move(config);
  check_lists(plan.config);
  const Located<std::string>& wanted = plan.config.schedule;
  if (is_schedule_file(wanted.value)) {
    plan_from_file(plan, folder / wanted.value);
  } else if (wanted.value == "auto") {
    plan_automatically(plan);
  } else if (const Family* family = find_family(wanted.value)) {
    plan_from_family(plan, *family);
  } else {
    throw InputError(wanted.where, unknown_schedule(wanted.value));
  }
  note_group_size(plan);
  drop_optimizer(plan);
  note_layers(plan);
  return plan;
}

Problem make_problem_on_placement(const Config& config, bool forward_only) {
  if (!config.placement) {
    throw InputError(
        config.schedule.where,
        fmt::format("schedule {} needs pipeline.placement: loop, v, wave, bidirectional or a list, "
                    "for example --set pipeline.placement=loop",
                    config.schedule.value));
  }
  const PlacementKind kind = config.placement->value.kind;
  const bool zigzag = kind == PlacementKind::v || kind == PlacementKind::wave;
  return make_problem(config, kind, zigzag ? 2 : 1, forward_only);
}

Problem make_problem(const Config& config, PlacementKind placement, int chunks, bool forward_only) {
  check_lists(config);
  return make_problem(config,
                      {.placement = placement_of(config, placement, chunks_of(config, chunks)),
                       .forward_only = forward_only});
}

}  // namespace counterflow
