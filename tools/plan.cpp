#include "tools/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <stdexcept>

#include "schedules/registry.h"
#include "tools/auto_schedule.h"
#include "tools/input_file.h"

namespace counterflow {
namespace {

constexpr std::string_view kFileSuffix = ".csv";
// Stage-microbatches of one problem: a few gigabytes of program.
constexpr std::int64_t kMaxStageMicrobatches = 10'000'000;

// Before anything is allocated for it.
void check_size(const Config& config, std::int64_t stages) {
  if (stages > kMaxStages) {
    throw InputError(
        config.ranks.where,
        fmt::format("{} ranks with {} stages a rank are {} stages; "
                    "the most is {}",
                    config.ranks.value, stages / config.ranks.value, stages, kMaxStages));
  }
  const std::int64_t work = stages * config.microbatches.value;
  if (work > kMaxStageMicrobatches) {
    throw InputError(config.microbatches.where,
                     fmt::format("{} stages of {} microbatches are {} stage-microbatches; the most "
                                 "is {}",
                                 stages, config.microbatches.value, work, kMaxStageMicrobatches));
  }
}

template <typename Visit>
void for_each_op(const ScheduleFile& file, const Visit& visit) {
  for (const auto& row : file.rows) {
    for (const Action& action : row) {
      if (action.form == Action::Form::group) {
        std::for_each(action.group.begin(), action.group.end(), visit);
        continue;
      }
      visit(action.op);
      if (action.form == Action::Form::pair) visit(action.paired);
    }
  }
}

// Stages a rank, read off the highest stage the file names.
int chunks_in(const ScheduleFile& file, int ranks, PlacementKind kind) {
  if (kind == PlacementKind::bidirectional) return 1;
  int stages = 0;
  for_each_op(file, [&](const Op& op) { stages = std::max(stages, op.stage + 1); });
  return std::max(kind == PlacementKind::v ? 2 : 1, (stages + ranks - 1) / ranks);
}

bool is_forward_only(const ScheduleFile& file) {
  bool any = false;
  bool backward = false;
  for_each_op(file, [&](const Op& op) {
    any = true;
    backward |= is_backward(op.kind) || op.kind == OpKind::send_backward ||
                op.kind == OpKind::receive_backward;
  });
  return any && !backward;
}

void plan_from_file(Plan& plan, const std::filesystem::path& path) {
  const Config& config = plan.config;
  const SourceLocation& where = config.schedule.where;
  if (!config.placement) {
    throw InputError(where,
                     fmt::format("the schedule file '{}' does not say which rank holds which "
                                 "stage: give pipeline.placement (loop, v, wave, "
                                 "bidirectional or a list)",
                                 path.string()));
  }
  ScheduleFile file = parse_schedule(read_input(path.string(), where), path.string());
  const int ranks = config.ranks.value;
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
  plan.schedule = file.compute();
  if (file.has_communication) plan.communication = std::move(file);
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
  const Shape shape{.ranks = config.ranks.value,
                    .microbatches = config.microbatches.value,
                    .chunks = chunks,
                    .group_size = config.group_size ? config.group_size->value : 0};
  const SourceLocation& where = config.schedule.where;
  // First of all, so that a shape the family cannot have is not taken for a wrong placement.
  if (const auto reason = refusal(family, shape)) throw InputError(where, *reason);
  plan.problem = make_problem(config, {.placement = placement_of(config, family.placement, chunks),
                                       .forward_only = family.forward_only});
  plan.family = &family;
  try {
    plan.schedule = generate(family, plan.problem);
  } catch (const InputError& error) {
    throw InputError(where, error.what());
  }
}

void plan_automatically(Plan& plan) {
  const Config& config = plan.config;
  if (!config.placement) {
    throw InputError(
        config.schedule.where,
        "schedule auto needs pipeline.placement: loop, v, wave, bidirectional or a list");
  }
  const PlacementKind kind = config.placement->value.kind;
  const bool zigzag = kind == PlacementKind::v || kind == PlacementKind::wave;
  const int chunks = chunks_of(config, zigzag ? 2 : 1);
  plan.problem = make_problem(
      config, {.placement = placement_of(config, kind, chunks), .forward_only = false});
  AutoChoice choice = choose_schedule(plan.problem, config.schedule.where);
  plan.family = choice.family;
  plan.schedule = std::move(choice.schedule);
  plan.notes.push_back(std::move(choice.note));
}

}  // namespace

int chunks_of(const Config& config, int otherwise) {
  return config.chunks ? config.chunks->value : otherwise;
}

Placement placement_of(const Config& config, PlacementKind kind, int chunks) {
  const int ranks = config.ranks.value;
  if (config.placement) kind = config.placement->value.kind;
  try {
    if (kind == PlacementKind::list) {
      const std::vector<Rank>& list = config.placement->value.list;
      check_size(config, static_cast<std::int64_t>(list.size()));
      return {ranks, list};
    }
    check_size(config, std::int64_t{ranks} * chunks);
    return {kind, ranks, chunks};
  } catch (const std::invalid_argument& error) {
    throw InputError(config.placement ? config.placement->where : config.schedule.where,
                     fmt::format("pipeline.placement {}: {}", name(kind), error.what()));
  }
}

Plan make_plan(const Options& options) {
  Plan plan;
  plan.config = read_config(options.config, options.overrides());
  const Located<std::string>& wanted = plan.config.schedule;
  if (wanted.value.ends_with(kFileSuffix)) {
    // Paths in a config are relative to it, those on the command line to the working directory.
    const std::filesystem::path path(wanted.value);
    const bool typed = !options.schedule.empty();
    plan_from_file(plan, typed ? path : std::filesystem::path(options.config).parent_path() / path);
  } else if (wanted.value == "auto") {
    plan_automatically(plan);
  } else if (const Family* family = find_family(wanted.value)) {
    plan_from_family(plan, *family);
  } else {
    throw InputError(
        wanted.where,
        fmt::format("unknown schedule '{}', did you mean '{}'? `counterflow schedules` "
                    "lists the families; a file ends in .csv",
                    wanted.value, nearest_family(wanted.value)));
  }
  return plan;
}

}  // namespace counterflow
