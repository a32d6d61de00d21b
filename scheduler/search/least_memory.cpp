#include "scheduler/search/least_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>

namespace counterflow {
namespace {

using LaneId = SearchModel::LaneId;

// Does a stage feed another, directly or not?
bool feeds(const StageGraph& graph, Stage from, Stage to) {
  std::vector<std::uint8_t> reached(static_cast<std::size_t>(graph.stages()), 0);
  reached[static_cast<std::size_t>(to)] = 1;
  for (Stage s = to; s > from; --s) {
    if (reached[static_cast<std::size_t>(s)] == 0) continue;
    for (const Stage before : graph.predecessors(s)) reached[static_cast<std::size_t>(before)] = 1;
  }
  return reached[static_cast<std::size_t>(from)] != 0;
}

// What one microbatch alone holds on the rank when this F begins: the stages that feed it there
// cannot have been freed, for their gradients need its own. A stage that makes its activations
// again holds what is left after its F, and as much as now when it has them back.
SearchModel::Amount held_at(const SearchModel& model, LaneId to, std::uint32_t number) {
  const SearchModel::Lane& lane = model.lanes[to];
  SearchModel::Amount held{};
  for (LaneId from = model.rank_begin[static_cast<std::size_t>(lane.rank)]; from <= to; ++from) {
    const SearchModel::Lane& other = model.lanes[from];
    if (from != to) {
      if (!other.allocates || other.direction != lane.direction) continue;
      if (!model.chain && !feeds(model.problem->graph, other.stage, lane.stage)) continue;
    }
    for (int r = 0; r < SearchModel::kResources; ++r) {
      const SearchModel::OpId op = model.id(from, number);
      held[static_cast<std::size_t>(r)] += model.allocated(from, op, r);
      if (from != to) held[static_cast<std::size_t>(r)] -= model.freed(from, op, r);
    }
  }
  return held;
}

}  // namespace

std::vector<SearchModel::Amount> least_memory(const SearchModel& model) {
  std::vector<SearchModel::Amount> least(model.ranks());
  for (LaneId id = 0; id < model.lanes.size(); ++id) {
    const SearchModel::Lane& lane = model.lanes[id];
    if (lane.kind != OpKind::forward) continue;
    const std::uint32_t count = model.allocations.empty() ? std::min(lane.count, 1U) : lane.count;
    for (std::uint32_t number = 0; number < count; ++number) {
      const SearchModel::Amount held = held_at(model, id, number);
      SearchModel::Amount& most = least[static_cast<std::size_t>(lane.rank)];
      for (std::size_t r = 0; r < SearchModel::kResources; ++r)
        most[r] = std::max(most[r], held[r]);
    }
  }
  return least;
}

std::vector<MemoryShortage> memory_shortages(const SearchModel& model) {
  std::vector<MemoryShortage> shortages;
  if (!model.has_limits) return shortages;
  const std::vector<SearchModel::Amount> least = least_memory(model);
  for (std::size_t rank = 0; rank < model.ranks(); ++rank) {
    for (int resource = 0; resource < SearchModel::kResources; ++resource) {
      const auto r = static_cast<std::size_t>(resource);
      if (least[rank][r] <= model.limits[rank][r]) continue;
      shortages.push_back(
          {static_cast<Rank>(rank), resource, least[rank][r], model.limits[rank][r]});
    }
  }
  return shortages;
}

std::string shortage_text(const Problem& problem, std::span<const MemoryShortage> shortages) {
  constexpr std::size_t kNamed = 8;
  std::string text = "no order fits: ";
  std::array<std::int64_t, SearchModel::kResources> most{};  // 0: no shortage of that
  for (std::size_t i = 0; i < shortages.size(); ++i) {
    const MemoryShortage& each = shortages[i];
    const auto rank = static_cast<std::size_t>(each.rank);
    const bool in_bytes = each.resource == 0;
    const std::int64_t fixed = !in_bytes || problem.limits.static_memory.empty()
                                   ? 0
                                   : problem.limits.static_memory[rank].value;
    std::int64_t& needed = most[static_cast<std::size_t>(each.resource)];
    needed = std::max(needed, each.needed + fixed);
    if (i >= kNamed) continue;
    if (in_bytes) {
      text += fmt::format(
          "rank {} needs {} B for one microbatch and {} B of static memory, its "
          "limit is {} B; ",
          each.rank, each.needed, fixed, each.limit + fixed);
    } else {
      text +=
          fmt::format("rank {} holds {} activations of one microbatch at once, its limit is {}; ",
                      each.rank, each.needed, each.limit);
    }
  }
  if (shortages.size() > kNamed) text += fmt::format("{} more; ", shortages.size() - kNamed);
  if (most[1] > 0) text += fmt::format("raise memory.limit_activations to {} there", most[1]);
  if (most[0] > 0) {
    text += fmt::format("{}raise memory.limit to {} B there", most[1] > 0 ? ", and " : "", most[0]);
    if (problem.keeping.empty()) {
      text += ", or let its stages keep less (stages.recompute or stages.offload)";
    }
  }
  return text;
}

}  // namespace counterflow
