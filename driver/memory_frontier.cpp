#include "driver/memory_frontier.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "driver/auto_schedule.h"
#include "driver/searched_plan.h"
#include "scheduler/error.h"
#include "scheduler/search/choices.h"
#include "scheduler/search/least_memory.h"
#include "scheduler/search/model.h"
#include "scheduler/search/search.h"

namespace counterflow {
namespace {

std::int64_t fixed_memory(const Problem& problem, std::size_t rank, bool in_bytes) {
  if (!in_bytes || problem.limits.static_memory.empty()) return 0;
  return problem.limits.static_memory[rank].value;
}

// The most any rank holds along an order, with its static memory where counted in bytes.
std::int64_t peak_of(const SearchModel& model, const Schedule& schedule, bool in_bytes) {
  const int resource = in_bytes ? 0 : 1;
  const SearchModel::Orders orders = model.orders(schedule);
  std::int64_t peak = 0;
  for (std::size_t rank = 0; rank < orders.size(); ++rank) {
    std::int64_t held = fixed_memory(*model.problem, rank, in_bytes);
    std::int64_t freed = 0;
    for (const SearchModel::OpId entry : orders[rank]) {
      const SearchModel::OpId op = entry & ~SearchModel::kFused;
      const SearchModel::LaneId lane = model.lane_of(op);
      held += model.allocated(lane, op, resource);
      peak = std::max(peak, held);
      freed += model.freed(lane, op, resource);
      if (entry != op) continue;  // what a pair frees, it frees when it ends
      held -= freed;
      freed = 0;
    }
  }
  return peak;
}

double bubble(const Problem& problem, const SearchResult& result) {
  if (result.makespan.count() == 0) return 0;
  Time busy{0};
  for (const auto& order : result.schedule.ranks) {
    for (const Slot& slot : order) busy += problem.duration(slot);
  }
  return 1 - static_cast<double>(busy.count()) /
                 (static_cast<double>(result.makespan.count()) * problem.ranks());
}

void set_limit(Problem& problem, std::int64_t limit, bool in_bytes) {
  const auto ranks = static_cast<std::size_t>(problem.ranks());
  problem.limits.bytes.clear();
  problem.limits.activations.clear();
  if (in_bytes) {
    problem.limits.bytes.assign(ranks, Bytes{limit});
  } else {
    problem.limits.activations.assign(ranks, limit);
  }
}

// The least limit with which any order fits on every rank.
std::int64_t least_limit(const Problem& problem, bool in_bytes) {
  const std::vector<SearchModel::Amount> least = least_memory(SearchModel(problem));
  std::int64_t limit = 0;
  for (std::size_t rank = 0; rank < least.size(); ++rank) {
    limit = std::max(limit, least[rank][in_bytes ? 0 : 1] + fixed_memory(problem, rank, in_bytes));
  }
  return limit;
}

std::vector<Stage> stages_that(const Problem& problem, KeepingKind kind) {
  std::vector<Stage> stages;
  for (Stage s = 0; s < problem.stages(); ++s) {
    if (problem.keeping_of(s).kind == kind) stages.push_back(s);
  }
  return stages;
}

// What is found with every stage keeping its activations, if anything fits.
std::optional<SearchResult> with_nothing_chosen(const Problem& problem,
                                                const std::vector<Schedule>& seeds,
                                                const SearchBudget& budget) {
  const Problem kept = with_all_kept(problem);
  try {
    return search(kept, seeds_for(kept, seeds), budget);
  } catch (const InfeasibleError&) {
    return std::nullopt;
  }
}

// The searches of one limit.
FrontierPoint point_at(const Problem& problem, std::vector<Schedule>& seeds,
                       const SearchBudget& budget, bool has_choices) {
  std::optional<SearchResult> kept;
  if (has_choices) kept = with_nothing_chosen(problem, seeds, budget);
  if (kept) seeds.push_back(kept->schedule);
  ChosenSearch found = search_choices(problem, seeds, budget);
  FrontierPoint point{.makespan = found.result.makespan,
                      .lower_bound = found.result.lower_bound,
                      .bubble_fraction = bubble(found.problem, found.result),
                      .found_by = found.result.found_by,
                      .recompute = stages_that(found.problem, KeepingKind::recompute),
                      .offload = stages_that(found.problem, KeepingKind::offload),
                      .all_kept = kept ? std::optional(kept->makespan) : std::nullopt};
  point.peak =
      peak_of(SearchModel(found.problem), found.result.schedule, !problem.limits.bytes.empty());
  seeds.push_back(std::move(found.result.schedule));
  return point;
}

}  // namespace

Frontier memory_frontier(Config config, const std::filesystem::path& folder,
                         const SearchBudget& budget, int points) {
  if (config.optimizer && config.optimizer->fsdp) {
    throw InputError(config.optimizer->where,
                     "optimizer: a frontier is of one pipeline, without the gathers of fsdp and "
                     "what they hold; leave out optimizer.fsdp here");
  }
  config.memory_limit.reset();
  config.activation_limit.reset();
  SearchedPlan unlimited = searched_plan(std::move(config), folder, budget);
  Problem problem = unlimited.plan.problem;
  Frontier frontier;
  frontier.in_bytes = std::ranges::any_of(
      problem.memory, [](const StageMemory& stage) { return stage.activation.value > 0; });
  frontier.has_choices = has_choices(problem);
  const bool in_bytes = frontier.in_bytes;
  const std::int64_t least = least_limit(with_least_kept(problem), in_bytes);
  const std::int64_t most =
      std::max(least, peak_of(SearchModel(problem), unlimited.result.schedule, in_bytes));
  std::vector<Schedule> seeds = family_schedules(problem);
  seeds.push_back(std::move(unlimited.result.schedule));
  std::int64_t last = -1;
  for (int i = 0; i < points; ++i) {
    const std::int64_t limit = points == 1 ? most : least + (most - least) * i / (points - 1);
    if (limit == last) continue;
    last = limit;
    set_limit(problem, limit, in_bytes);
    FrontierPoint point = point_at(problem, seeds, budget, frontier.has_choices);
    point.limit = limit;
    // What fits a smaller limit fits this one.
    if (!frontier.points.empty() && frontier.points.back().makespan < point.makespan) {
      const FrontierPoint& before = frontier.points.back();
      const std::optional<Time> all_kept = point.all_kept;
      const Time bound = point.lower_bound;
      point = before;
      point.limit = limit;
      point.lower_bound = bound;
      point.all_kept = all_kept;
    }
    frontier.points.push_back(std::move(point));
  }
  return frontier;
}

}  // namespace counterflow
