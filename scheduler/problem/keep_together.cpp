#include "scheduler/problem/keep_together.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>

#include "scheduler/problem/per_item.h"

namespace counterflow {
namespace {

// Where a stage or layer is.
struct Home {
  Stage stage = 0;
  std::int64_t before = 0;  // layers of the stage before it
  std::int64_t after = 0;
};

Home home_of(int number, const Cut* cut) {
  if (cut == nullptr) return {.stage = number};
  std::int64_t first = 0;
  for (std::size_t s = 0; s < cut->size(); ++s) {
    if (number < first + (*cut)[s]) {
      return {static_cast<Stage>(s), number - first, first + (*cut)[s] - 1 - number};
    }
    first += (*cut)[s];
  }
  return {};
}

bool share_rank(const Placement& placement, Stage a, Stage b) {
  for (int replica = 0; replica < placement.replicas(); ++replica) {
    if (placement.rank_of(a, replica) != placement.rank_of(b, replica)) return false;
  }
  return true;
}

std::int64_t distance(const Placement& placement, Home a, Home b) {
  if (share_rank(placement, a.stage, b.stage)) return 0;
  if (a.stage > b.stage) std::swap(a, b);
  constexpr std::int64_t kStage = 10'000;
  const std::int64_t stages = b.stage - a.stage;
  return (stages - 1) * kStage + std::min(a.after, b.before) + 1;
}

}  // namespace

std::int64_t distance_apart(const std::vector<std::vector<int>>& groups, const Placement& placement,
                            const Cut* cut) {
  std::int64_t total = 0;
  for (const std::vector<int>& group : groups) {
    const Home first = home_of(group.front(), cut);
    for (const int other : group) total += distance(placement, first, home_of(other, cut));
  }
  return total;
}

std::string apart_text(const std::vector<std::vector<int>>& groups, const Placement& placement,
                       const Cut* cut) {
  for (const std::vector<int>& group : groups) {
    const Stage first = home_of(group.front(), cut).stage;
    for (const int other : group) {
      const Stage second = home_of(other, cut).stage;
      if (share_rank(placement, first, second)) continue;
      return fmt::format("{} {} and {} do not share a rank: they are on ranks {} and {}",
                         cut != nullptr ? "layers" : "stages", group.front(), other,
                         placement.rank_of(first, 0), placement.rank_of(second, 0));
    }
  }
  return "";
}

void check_together(const Config& config, const Placement& placement, const Cut* cut) {
  if (!config.keep_together) return;
  const SourceLocation& where = config.keep_together->where;
  const bool layers = cut != nullptr;
  const int count = layers ? std::accumulate(cut->begin(), cut->end(), 0) : placement.stages();
  for (const std::vector<int>& group : config.keep_together->value) {
    for (const int each : group) {
      if (each < count) continue;
      per_item::fail(where, "pipeline.keep_together",
                     fmt::format("there is no {0} {1}; name one of the {2} {0}s, 0 to {3}",
                                 layers ? "layer" : "stage", each, count, count - 1));
    }
  }
  const std::string apart = apart_text(config.keep_together->value, placement, cut);
  if (apart.empty()) return;
  const std::string_view advice =
      !layers ? "give pipeline.placement as a list with them on one rank, or v for the first and "
                "the last stage"
      : config.layout
          ? "give a layout or placement that puts them together, or leave layout out and have one "
            "looked for"
          : "no cut was found that puts them together on this placement; give another, v for the "
            "first and the last layer or a list with their stages on one rank";
  per_item::fail(where, "pipeline.keep_together", fmt::format("{}; {}", apart, advice));
}

}  // namespace counterflow
