#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "scheduler/problem/links.h"
#include "scheduler/problem/scenario.h"

namespace counterflow::sim {

inline constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

// How fast something goes over time: piecewise constant.
class Pace {
 public:
  // From `from` to `until` (kNever: for ever) everything takes `factor` times as long, infinity: it
  // stands still. Where such times overlap, factors multiply.
  void slow(std::int64_t from, std::int64_t until, double factor);
  // When something that takes `work` ns at full pace ends, rounded to whole ns; kNever: it does
  // not. Work that touches no slow time is exact. O(steps).
  [[nodiscard]] std::int64_t end(std::int64_t at, std::int64_t work) const;

  struct Step {
    std::int64_t from = 0;
    double factor = 1;  // until the next step
  };
  [[nodiscard]] const std::vector<Step>& steps() const { return steps_; }

 private:
  std::vector<Step> steps_{Step{}};
};

// A scenario in the form the engine asks for.
class Disturbances {
 public:
  Disturbances(const Scenario& scenario, const Links& links, std::size_t ranks);

  [[nodiscard]] const Pace& rank(std::size_t rank) const { return ranks_[rank]; }
  // nullptr: nothing ever happens to this pair's messages.
  [[nodiscard]] const Pace* link(std::size_t from, std::size_t to) const;
  // kNever: it does not.
  [[nodiscard]] std::int64_t fails_at(std::size_t rank) const { return fails_at_[rank]; }

  // With a topology. Pairs of ranks that are slowed have a link of their own behind those of the
  // topology, whose capacity is their share of what the pair would get alone.
  [[nodiscard]] std::size_t pair_links() const { return links_.size(); }
  // The number of a pair's own link among them, -1: it has none.
  [[nodiscard]] int pair_link(std::size_t from, std::size_t to) const;
  struct Change {
    std::int64_t at = 0;
    bool is_failure = false;
    std::uint32_t what = 0;  // rank, or link of the network
    double capacity = 0;     // bytes a ns
  };
  [[nodiscard]] const std::vector<Change>& changes() const { return changes_; }  // ascending

 private:
  struct PairPace {
    std::pair<std::size_t, std::size_t> pair;
    Pace pace;
  };
  Pace& pace_of(std::size_t from, std::size_t to);
  void list_changes(const Links& links, const std::map<SharedLinkId, Pace>& shared);

  std::vector<Pace> ranks_;
  std::vector<PairPace> links_;
  std::vector<std::int64_t> fails_at_;
  std::vector<Change> changes_;
};

}  // namespace counterflow::sim
