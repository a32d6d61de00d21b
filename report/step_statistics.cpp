#include "report/step_statistics.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "report/kind_names.h"
#include "report/report.h"
#include "report/robust.h"

namespace counterflow {
namespace {

double nanoseconds(Time time) {
  return static_cast<double>(time.count());
}
Time time_of(double value) {
  return Time{static_cast<std::int64_t>(std::llround(value))};
}

// The median of the others: of all values but `value`, which is one of them.
double median_without(std::vector<double> sorted, double value) {
  sorted.erase(std::ranges::lower_bound(sorted, value));
  return median_of_sorted(sorted);
}

// How often the others were slow; never quite never, and what nobody can tell is one in ten.
double chance_of(int slow, std::int64_t steps) {
  if (steps == 0) return 0.1;
  return (slow + 1.0) / (static_cast<double>(steps) + 1.0);
}

}  // namespace

StepStatistics::StepStatistics(const Program& program, const Timeline& predicted)
    : program_(program),
      own_times_(program),
      predicted_makespan_(measure(program, predicted).makespan) {
  make_groups(own_times_.of(predicted));
}

void StepStatistics::make_groups(const std::vector<std::vector<Time>>& predicted) {
  std::map<std::pair<Kind, Rank>, Group> groups;
  for (std::size_t r = 0; r < program_.ranks.size(); ++r) {
    const auto& instructions = program_.ranks[r].instructions;
    for (std::uint32_t i = 0; i < instructions.size(); ++i) {
      const Instruction& each = instructions[i];
      if (each.op.kind == OpKind::none) continue;
      const auto rank = static_cast<Rank>(r);
      Group& group = groups[{{each.op.kind, each.paired.kind}, rank}];
      group.rank = rank;
      group.kind = {each.op.kind, each.paired.kind};
      group.instructions.push_back(i);
      group.expected.push_back(nanoseconds(predicted[r][i]));
    }
  }
  for (auto& [key, group] : groups) {
    group.predicted = std::accumulate(group.expected.begin(), group.expected.end(), 0.0);
    if (std::ranges::any_of(group.expected, [](double e) { return e <= 0; })) {
      group.expected.clear();
    } else {
      group.ops.resize(group.instructions.size());
    }
    if (kinds_.empty() || kinds_.back().kind != group.kind) {
      kinds_.push_back({.kind = group.kind, .first = groups_.size()});
    }
    ++kinds_.back().count;
    groups_.push_back(std::move(group));
  }
}

void StepStatistics::add(const Timeline& step, Time makespan) {
  const auto own = own_times_.of(step);
  makespans_.add(nanoseconds(makespan));
  for (OfKind& kind : kinds_) {
    std::vector<double> paces;
    double time = 0;
    for (std::size_t g = kind.first; g < kind.first + kind.count; ++g) {
      Group& group = groups_[g];
      const double pace = add(group, own[static_cast<std::size_t>(group.rank)]);
      time += group.of_step;
      if (group.is_judged()) paces.push_back(pace);
    }
    kind.times.add(time / static_cast<double>(program_.ranks.size()));
    compare_ranks(kind, paces);
  }
  ++steps_;
}

double StepStatistics::add(Group& group, const std::vector<Time>& own) const {
  std::vector<double> times;
  for (const std::uint32_t i : group.instructions) times.push_back(nanoseconds(own[i]));
  group.of_step = std::accumulate(times.begin(), times.end(), 0.0);
  group.total += group.of_step;
  group.medians.add(median(times));
  group.spreads.add(spread(times));
  if (!group.is_judged()) return 0;
  for (std::size_t k = 0; k < times.size(); ++k) {
    times[k] = std::log(std::max(times[k], 1.0) / group.expected[k]);
  }
  const double pace = median(times);
  for (std::size_t k = 0; k < times.size(); ++k) group.ops[k].add(steps_, times[k] - pace);
  return pace;
}

void StepStatistics::compare_ranks(OfKind& kind, const std::vector<double>& paces) {
  std::vector<double> sorted = paces;
  std::ranges::sort(sorted);
  auto pace = paces.begin();
  for (std::size_t g = kind.first; g < kind.first + kind.count; ++g) {
    Group& group = groups_[g];
    if (!group.is_judged()) continue;
    // Without peers the median of the others is 0: that of the prediction.
    group.pace.add(steps_, *pace - median_without(sorted, *pace));
    if (group.pace.since() == steps_) group.since = 0;
    group.since += group.of_step;
    ++pace;
  }
}

RunStatistics StepStatistics::result() const {
  RunStatistics result;
  result.steps = steps_;
  result.predicted_makespan = predicted_makespan_;
  std::vector<KindSeries> series;
  for (const OfKind& kind : kinds_) {
    series.push_back({kind_token(kind.kind.first, kind.kind.second), kind.times.values()});
    find_slow_ranks(kind, result.stragglers);
    find_slow_ops(kind, result.stragglers);
  }
  for (const Group& group : groups_) result.ranks.push_back(figures(group));
  result.drift = drift_of(makespans_.values(), series);
  // What costs a step less than this does not matter to it.
  constexpr double kMatters = 0.005;
  const double least = kMatters * median(makespans_.values());
  std::erase_if(result.stragglers, [&](const Straggler& s) { return nanoseconds(s.cost) < least; });
  std::ranges::stable_sort(result.stragglers, std::ranges::greater{}, &Straggler::cost);
  return result;
}

void StepStatistics::find_slow_ranks(const OfKind& kind, std::vector<Straggler>& found) const {
  int slow = 0;
  int judged = 0;
  for (std::size_t g = kind.first; g < kind.first + kind.count; ++g) {
    if (!groups_[g].is_judged()) continue;
    slow += groups_[g].pace.slow_steps();
    ++judged;
  }
  for (std::size_t g = kind.first; g < kind.first + kind.count; ++g) {
    const Group& group = groups_[g];
    if (!group.is_judged()) continue;
    const std::int64_t others = std::int64_t{judged - 1} * steps_;
    const double chance = chance_of(slow - group.pace.slow_steps(), others);
    if (!group.pace.is_slow(chance, static_cast<double>(groups_.size()))) continue;
    const double factor = std::exp(group.pace.excess());
    const double a_step = group.since / (steps_ - group.pace.since());
    found.push_back({.rank = group.rank,
                     .kind = kind_token(kind.kind.first, kind.kind.second),
                     .op = std::nullopt,
                     .factor = factor,
                     .has_peers = judged > 1,
                     .since = group.pace.since(),
                     .cost = time_of(a_step * (1 - 1 / factor))});
  }
}

void StepStatistics::find_slow_ops(const OfKind& kind, std::vector<Straggler>& found) const {
  std::int64_t slow = 0;
  std::int64_t ops = 0;
  for (std::size_t g = kind.first; g < kind.first + kind.count; ++g) {
    for (const Persistence& op : groups_[g].ops) slow += op.slow_steps();
    ops += std::ssize(groups_[g].ops);
  }
  for (std::size_t g = kind.first; g < kind.first + kind.count; ++g) {
    const Group& group = groups_[g];
    for (std::size_t k = 0; k < group.ops.size(); ++k) {
      const Persistence& op = group.ops[k];
      const double chance =
          chance_of(static_cast<int>(slow - op.slow_steps()), (ops - 1) * std::int64_t{steps_});
      if (!op.is_slow(chance, static_cast<double>(ops))) continue;
      const double factor = std::exp(op.excess());
      const auto& instructions = program_.ranks[static_cast<std::size_t>(group.rank)].instructions;
      // What the others of its kind take there, for what it should take.
      const double usual = median(group.medians.values()) * group.expected[k] *
                           static_cast<double>(group.ops.size()) / group.predicted;
      found.push_back({.rank = group.rank,
                       .kind = kind_token(kind.kind.first, kind.kind.second),
                       .op = instructions[group.instructions[k]].op,
                       .factor = factor,
                       .has_peers = true,
                       .since = op.since(),
                       .cost = time_of(usual * (factor - 1))});
    }
  }
}

RunStatistics::OfRank StepStatistics::figures(const Group& group) const {
  const auto count = static_cast<double>(group.instructions.size());
  return {.rank = group.rank,
          .kind = kind_token(group.kind.first, group.kind.second),
          .count = static_cast<int>(group.instructions.size()),
          .predicted = time_of(group.predicted / count),
          .mean = time_of(steps_ > 0 ? group.total / (count * steps_) : 0),
          .median = time_of(median(group.medians.values())),
          .spread = time_of(median(group.spreads.values())),
          .step_spread = time_of(spread(group.medians.values()))};
}

}  // namespace counterflow
