#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <tuple>
#include <unordered_set>
#include <vector>

#include "scheduler/partition/cut_sums.h"

namespace counterflow {
namespace {

enum class Answer : std::uint8_t { yes, no, unknown };

struct KeyHash {
  std::size_t operator()(const std::vector<std::int64_t>& key) const {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const std::int64_t word : key) {
      hash = (hash ^ static_cast<std::uint64_t>(word)) * 0x9e3779b97f4a7c15;
      hash ^= hash >> 29U;
    }
    return hash;
  }
};

// Is there a cut in which no group has more than a bound? Stages are filled in order, each with
// about its share first; a place that led nowhere is remembered with what its open groups had.
class BoundedCut {
 public:
  BoundedCut(const CutProblem& problem, const CutSums& sums)
      : problem_(problem), sums_(sums), cut_(problem.stages()) {
    stages_left_.assign(problem.groups(), 0);
    for (const int group : problem.group) ++stages_left_[static_cast<std::size_t>(group)];
    total_left_ = stages_left_;
  }

  Answer find(std::int64_t bound, std::int64_t budget) {
    bound_ = bound;
    budget_ = budget;
    const std::size_t groups = problem_.groups();
    load_.assign(groups, 0);
    need_.assign(groups, 0);
    stages_left_ = total_left_;
    open_room_ = static_cast<double>(bound) * static_cast<double>(groups);
    slack_ = open_room_ * 1e-12;  // more than rounding adds up to
    failed_.clear();
    const bool found = place(0, 0);
    if (found) return Answer::yes;
    return budget_ < 0 ? Answer::unknown : Answer::no;
  }

  [[nodiscard]] const Cut& cut() const { return cut_; }

 private:
  bool place(std::size_t stage, std::size_t begin) {
    const std::size_t layers = problem_.layers();
    if (stage == problem_.stages()) return begin == layers;
    const auto rest = static_cast<double>(sums_.load(begin, layers));
    if (rest > open_room_ + slack_) return false;
    if (--budget_ < 0) return false;
    const bool shared = problem_.groups() < problem_.stages();
    std::vector<std::int64_t> key;
    if (shared) {
      key = state(stage, begin);
      if (failed_.contains(key)) return false;
    }
    for (const std::size_t end : ends(stage, begin)) {
      if (place_one(stage, begin, end)) return true;
      if (budget_ < 0) return false;
    }
    if (shared) failed_.insert(std::move(key));
    return false;
  }

  // Gives the stage these layers and goes on; takes them back if that leads nowhere.
  bool place_one(std::size_t stage, std::size_t begin, std::size_t end) {
    const auto group = static_cast<std::size_t>(problem_.group[stage]);
    const std::int64_t own = sums_.load(begin, end);
    const double need = sums_.limited() ? sums_.need(stage, begin, end) : 0;
    const double room_before = open_room_;
    load_[group] += own;
    need_[group] += need;
    open_room_ -= static_cast<double>(own);
    if (--stages_left_[group] == 0) open_room_ -= static_cast<double>(bound_ - load_[group]);
    cut_[stage] = static_cast<int>(end - begin);
    if (place(stage + 1, end)) return true;
    ++stages_left_[group];
    open_room_ = room_before;
    need_[group] -= need;
    load_[group] -= own;
    return false;
  }

  // Where the stage may end, the nearest to its share first.
  [[nodiscard]] std::vector<std::size_t> ends(std::size_t stage, std::size_t begin) const {
    const auto group = static_cast<std::size_t>(problem_.group[stage]);
    const std::size_t stages_after = problem_.stages() - stage - 1;
    const std::size_t last = problem_.layers() - stages_after;
    std::vector<std::size_t> all;
    if (stages_after == 0) {
      if (may_take(stage, begin, last)) all.push_back(last);
      return all;
    }
    for (std::size_t end = begin + 1; end <= last && may_take(stage, begin, end); ++end) {
      all.push_back(end);
    }
    const std::int64_t share = (bound_ - load_[group]) / stages_left_[group];
    std::stable_sort(all.begin(), all.end(), [&](std::size_t a, std::size_t b) {
      return std::abs(sums_.load(begin, a) - share) < std::abs(sums_.load(begin, b) - share);
    });
    return all;
  }

  [[nodiscard]] bool may_take(std::size_t stage, std::size_t begin, std::size_t end) const {
    const auto group = static_cast<std::size_t>(problem_.group[stage]);
    if (load_[group] + sums_.load(begin, end) > bound_) return false;
    return !sums_.limited() || need_[group] + sums_.need(stage, begin, end) <= sums_.room(group);
  }

  // What decides whether the rest can be placed.
  [[nodiscard]] std::vector<std::int64_t> state(std::size_t stage, std::size_t begin) const {
    std::vector<std::int64_t> key{static_cast<std::int64_t>(stage),
                                  static_cast<std::int64_t>(begin)};
    for (std::size_t group = 0; group < load_.size(); ++group) {
      if (stages_left_[group] == 0) continue;
      key.push_back(load_[group]);
      if (sums_.limited()) key.push_back(static_cast<std::int64_t>(need_[group]));
    }
    return key;
  }

  const CutProblem& problem_;
  const CutSums& sums_;
  Cut cut_;
  std::vector<int> total_left_;
  std::vector<int> stages_left_;  // [group]
  std::vector<std::int64_t> load_;
  std::vector<double> need_;
  double open_room_ = 0;  // what the groups with stages left may still take
  double slack_ = 0;
  std::int64_t bound_ = 0;
  std::int64_t budget_ = 0;
  std::unordered_set<std::vector<std::int64_t>, KeyHash> failed_;
};

bool fits(const CutProblem& problem, const CutSums& sums, const Cut& cut) {
  if (!sums.limited()) return true;
  std::vector<double> need(problem.groups(), 0);
  std::size_t begin = 0;
  for (std::size_t stage = 0; stage < cut.size(); ++stage) {
    const std::size_t end = begin + static_cast<std::size_t>(cut[stage]);
    need[static_cast<std::size_t>(problem.group[stage])] += sums.need(stage, begin, end);
    begin = end;
  }
  for (std::size_t group = 0; group < need.size(); ++group) {
    if (need[group] > sums.room(group)) return false;
  }
  return true;
}

std::int64_t bottleneck_of(const CutProblem& problem, const Cut& cut) {
  const std::vector<std::int64_t> loads = group_loads(problem, cut);
  return *std::max_element(loads.begin(), loads.end());
}

// Smaller is evener: the bottleneck, then the squares of the groups, then of the stages.
std::tuple<std::int64_t, double, double> unevenness(const CutProblem& problem, const CutSums& sums,
                                                    const Cut& cut) {
  const auto squares = [](double sum, std::int64_t load) {
    return sum + static_cast<double>(load) * static_cast<double>(load);
  };
  const std::vector<std::int64_t> groups = group_loads(problem, cut);
  double stages = 0;
  std::size_t begin = 0;
  for (const int size : cut) {
    const std::size_t end = begin + static_cast<std::size_t>(size);
    stages = squares(stages, sums.load(begin, end));
    begin = end;
  }
  return {*std::max_element(groups.begin(), groups.end()),
          std::accumulate(groups.begin(), groups.end(), 0.0, squares), stages};
}

// The next evener cut that differs by one layer moved; false if there is none.
bool move_one(const CutProblem& problem, const CutSums& sums, Cut& cut) {
  const auto now = unevenness(problem, sums, cut);
  for (int& from : cut) {
    if (from < 2) continue;
    for (int& to : cut) {
      if (&from == &to) continue;
      --from;
      ++to;
      if (unevenness(problem, sums, cut) < now && fits(problem, sums, cut)) return true;
      ++from;
      --to;
    }
  }
  return false;
}

// Single layers moved while that makes the cut evener, in a bounded number of tries.
void tidy(const CutProblem& problem, const CutSums& sums, Cut& cut) {
  constexpr std::size_t kMostWork = 100'000'000;
  const std::size_t sweep = cut.size() * cut.size() * (cut.size() + problem.layers());
  for (std::size_t work = sweep; work <= kMostWork; work += sweep) {
    if (!move_one(problem, sums, cut)) return;
  }
}

// No cut has a smaller bottleneck: a layer is in one group, and the groups share the whole.
std::int64_t least_bottleneck(const CutProblem& problem, const CutSums& sums) {
  const auto groups = static_cast<std::int64_t>(problem.groups());
  const std::int64_t whole = sums.load(0, problem.layers());
  return std::max((whole + groups - 1) / groups,
                  *std::max_element(problem.load.begin(), problem.load.end()));
}

// A start: every stage for itself, then evened out.
std::optional<Cut> first_cut(const CutProblem& problem, const CutSums& sums) {
  CutProblem apart;
  apart.load = problem.load;
  apart.group.resize(problem.stages());
  std::iota(apart.group.begin(), apart.group.end(), 0);
  std::optional<Cut> cut = chain_cut(apart);
  if (cut && fits(problem, sums, *cut)) {
    tidy(problem, sums, *cut);
    return cut;
  }
  return std::nullopt;
}

}  // namespace

std::optional<BalancedCut> grouped_cut(const CutProblem& problem, std::int64_t budget) {
  constexpr std::int64_t kCalls = 40;
  const CutSums sums(problem);
  BoundedCut search(problem, sums);
  std::optional<Cut> best = first_cut(problem, sums);
  std::int64_t proven = least_bottleneck(problem, sums);
  if (!best) {
    const Answer any = search.find(sums.load(0, problem.layers()), budget);
    if (any != Answer::yes) return std::nullopt;
    best = search.cut();
  }
  std::int64_t high = bottleneck_of(problem, *best);
  for (std::int64_t low = proven; low < high;) {
    const std::int64_t bound = low + (high - low) / 2;
    const Answer answer = search.find(bound, budget / kCalls);
    if (answer == Answer::yes) {
      best = search.cut();
      high = bottleneck_of(problem, *best);
      continue;
    }
    // What was only not found may still be there: no proof, but no second try either.
    if (answer == Answer::no && proven == low) proven = bound + 1;
    low = bound + 1;
  }
  tidy(problem, sums, *best);
  return BalancedCut{
      .cut = *best, .bottleneck = bottleneck_of(problem, *best), .lower_bound = proven};
}

}  // namespace counterflow
