#include "driver/memory_frontier.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "driver/auto_schedule.h"
#include "driver/searched_plan.h"
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

}  // namespace

Frontier memory_frontier(Config config, const std::filesystem::path& folder,
                         const SearchBudget& budget, int points) {
  config.memory_limit.reset();
  config.activation_limit.reset();
  SearchedPlan unlimited = searched_plan(std::move(config), folder, budget);
  Problem problem = unlimited.plan.problem;
  Frontier frontier;
  frontier.in_bytes = std::ranges::any_of(
      problem.memory, [](const StageMemory& stage) { return stage.activation.value > 0; });
  const bool in_bytes = frontier.in_bytes;
  const std::int64_t least = least_limit(problem, in_bytes);
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
    SearchResult result = search(problem, seeds, budget);
    frontier.points.push_back({.limit = limit,
                               .peak = peak_of(SearchModel(problem), result.schedule, in_bytes),
                               .makespan = result.makespan,
                               .lower_bound = result.lower_bound,
                               .bubble_fraction = bubble(problem, result),
                               .found_by = result.found_by});
    seeds.push_back(std::move(result.schedule));
  }
  return frontier;
}

}  // namespace counterflow
