#include "scheduler/search/priorities.h"

#include <algorithm>
#include <array>

#include "scheduler/search/random.h"

namespace counterflow {
namespace {

using LaneId = SearchModel::LaneId;

std::int64_t eighths(std::int64_t value, int count) {
  return value / 8 * count + value % 8 * count / 8;
}

// When a W is due: after its G, or before it where time runs backwards.
std::int64_t weight_base(const SearchModel& model, LaneId gradient, std::int64_t gradient_base,
                         std::int64_t delay) {
  if (model.is_reversed) {
    const LaneId weight = model.weight_of(gradient);
    return gradient_base - model.lanes[weight].duration - delay;
  }
  return gradient_base + model.lanes[gradient].duration + delay;
}

std::int64_t class_of(OpKind kind, bool weight_second) {
  if (kind == OpKind::forward) return weight_second ? 2 : 1;
  if (kind == OpKind::backward_weight) return weight_second ? 1 : 2;
  return 0;
}

// The memory of a stage copy is taken by one of its lanes; as many of its ops are in flight as
// periods pass between its begin and the last end of the copy, at this stretch.
void set_caps(const SearchModel& model, const PriorityRule& rule, std::int64_t turn,
              ListRule& result) {
  constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  result.caps.assign(model.lanes.size(), kNone);
  for (LaneId f = 0; f < model.lanes.size(); ++f) {
    if (model.lanes[f].kind != OpKind::forward) continue;
    const LaneId last = model.last_of_copy(f);
    const LaneId first = model.is_reversed ? last : f;
    const LaneId end = model.is_reversed ? f : last;
    if (rule.cap > 0) {
      const std::int64_t life =
          model.lanes[end].head + model.lanes[end].duration - model.lanes[first].head;
      const std::int64_t cap =
          (eighths(life, rule.cap) + turn - 1) / std::max<std::int64_t>(1, turn);
      result.caps[first] = static_cast<std::uint32_t>(std::max<std::int64_t>(1, cap));
    }
    if (rule.entry > 0 && model.problem->graph.predecessors(model.lanes[f].stage).empty()) {
      result.caps[first] = std::min(result.caps[first], static_cast<std::uint32_t>(rule.entry));
    }
  }
}

}  // namespace

std::int64_t period(const SearchModel& model) {
  std::int64_t longest = 0;
  for (std::size_t rank = 0; rank < model.ranks(); ++rank) {
    std::int64_t load = 0;
    for (LaneId lane = model.rank_begin[rank]; lane < model.rank_begin[rank + 1]; ++lane) {
      load += model.lanes[lane].duration;
    }
    longest = std::max(longest, load);
  }
  return longest;
}

ListRule list_rule(const SearchModel& model, const PriorityRule& rule) {
  ListRule result;
  const std::int64_t turn = period(model);
  result.slope.assign(model.lanes.size(), turn);
  result.base.resize(model.lanes.size());
  result.patience = rule.patience;
  using Style = PriorityRule::Style;
  const bool classes = rule.style == Style::gradient_first || rule.style == Style::weight_second;
  // Above every key of a lower class.
  const std::int64_t step = turn * (static_cast<std::int64_t>(model.stride) + 2) * 4 +
                            4 * (model.lanes.empty() ? 0 : model.lanes[0].tail);
  for (LaneId id = 0; id < model.lanes.size(); ++id) {
    const SearchModel::Lane& lane = model.lanes[id];
    std::int64_t base = rule.style == Style::tail ? -eighths(lane.tail, rule.stretch)
                                                  : eighths(lane.head, rule.stretch);
    if (classes) {
      base = step * class_of(lane.kind, rule.style == Style::weight_second) - lane.tail;
    }
    if (lane.direction != 0) base += eighths(turn, rule.shift);
    result.base[id] = base;
  }
  if (!classes) {
    for (LaneId id = 0; id < model.lanes.size(); ++id) {
      if (const LaneId w = model.weight_of(id); w != SearchModel::kNoLane) {
        result.base[w] = weight_base(model, id, result.base[id], eighths(turn, rule.weight_delay));
      }
    }
  }
  if (rule.cap > 0 || rule.entry > 0) set_caps(model, rule, turn, result);
  return result;
}

std::vector<PriorityRule> priority_grid(const SearchModel& model, std::uint64_t seed) {
  using Style = PriorityRule::Style;
  constexpr std::array kStretches{6, 8, 7, 10, 12, 14, 9, 16, 20, 11, 24, 5};
  constexpr std::array kDelays{0, 4, 8, 16, 32, 64, 128};
  constexpr std::array kPatience{0, 2, 4, 8};
  std::vector<PriorityRule> first;
  std::vector<PriorityRule> rest;
  SearchRandom random(seed);
  const auto vary = [&](PriorityRule rule) {
    // One in two as it is; the others with a limit on what is under way.
    switch (random.below(6)) {
      case 0:
        rule.entry = 1 + static_cast<int>(random.below(4));
        break;
      case 1:
        rule.entry =
            1 + static_cast<int>(random.below(2 * static_cast<std::uint32_t>(model.ranks())));
        break;
      case 2:
        rule.cap = 6 + 2 * static_cast<int>(random.below(8));
        break;
      default:
        break;
    }
    if (model.sequences.size() > 1) {
      constexpr std::array kShifts{4, 0, -4};
      rule.shift = random.below(8) == 0 ? 8 * static_cast<int>(model.stride)
                                        : kShifts[random.below(kShifts.size())];
    }
    rest.push_back(rule);
  };
  for (const bool reversed : {false, true}) {
    for (const int patience : kPatience) {
      for (const Style style : {Style::gradient_first, Style::weight_second}) {
        first.push_back({.style = style, .reversed = reversed, .patience = patience});
        for (int i = 0; i < 6; ++i) vary(first.back());
      }
      for (const Style style : {Style::deadline, Style::tail}) {
        for (const int stretch : kStretches) {
          for (const int delay : kDelays) {
            vary({.style = style,
                  .reversed = reversed,
                  .stretch = stretch,
                  .weight_delay = delay,
                  .patience = patience});
          }
        }
      }
    }
  }
  for (std::size_t i = rest.size(); i > 1; --i) {
    std::swap(rest[i - 1], rest[random.below(static_cast<std::uint32_t>(i))]);
  }
  first.insert(first.end(), rest.begin(), rest.end());
  return first;
}

}  // namespace counterflow
