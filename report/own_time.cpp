#include "report/own_time.h"

#include <algorithm>

#include "scheduler/graph/collective_groups.h"
#include "scheduler/graph/matching.h"

namespace counterflow {

OwnTimes::OwnTimes(const Program& program) : program_(program) {
  const Matching matching(program);
  for (std::uint32_t r = 0; r < program.ranks.size(); ++r) {
    for (std::uint32_t k = 0; k < program.ranks[r].transfers.size(); ++k) {
      const Matching::End other = matching.partner(r, k);
      if (!other.exists()) continue;
      needs_.push_back({{r, matching.instruction(r, k)},
                        {other.rank, matching.instruction(other.rank, other.transfer)}});
    }
  }
  for (const CollectiveGroup& group : collective_groups(program)) {
    for (const auto& member : group.members) {
      for (const auto& other : group.members) {
        if (other.rank == member.rank) continue;
        needs_.push_back({{member.rank, member.instruction}, {other.rank, other.instruction}});
      }
    }
  }
}

std::vector<std::vector<Time>> OwnTimes::of(const Timeline& timeline) const {
  std::vector<std::vector<Time>> times;
  for (const RankTimeline& rank : timeline.ranks) {
    auto& own = times.emplace_back();
    own.reserve(rank.instructions.size());
    for (const Interval& each : rank.instructions) own.push_back(each.length());
  }
  for (const Need& need : needs_) {
    const Interval& at = timeline.ranks[need.at.rank].instructions[need.at.instruction];
    const Time ready = timeline.ranks[need.other.rank].instructions[need.other.instruction].begin;
    // A send that was buffered ended without its receive.
    if (ready >= at.end) continue;
    Time& own = times[need.at.rank][need.at.instruction];
    own = std::min(own, at.end - ready);
  }
  return times;
}

}  // namespace counterflow
