#include "scheduler/bounds/jackson.h"

#include <algorithm>
#include <queue>
#include <utility>

namespace counterflow {

std::int64_t jackson_preemptive(std::vector<MachineOp>& ops) {
  std::sort(ops.begin(), ops.end(),
            [](const MachineOp& a, const MachineOp& b) { return a.head < b.head; });
  std::priority_queue<std::pair<std::int64_t, std::int64_t>> available;  // tail, time left
  std::int64_t now = 0;
  std::int64_t best = 0;
  for (std::size_t next = 0; next < ops.size() || !available.empty();) {
    if (available.empty()) now = std::max(now, ops[next].head);
    for (; next < ops.size() && ops[next].head <= now; ++next) {
      available.emplace(ops[next].tail, ops[next].duration);
    }
    const auto [tail, left] = available.top();
    available.pop();
    const std::int64_t until = next < ops.size() ? ops[next].head : now + left;
    const std::int64_t run = std::min(left, until - now);
    now += run;
    if (run < left) {
      available.emplace(tail, left - run);
    } else {
      best = std::max(best, now + tail);
    }
  }
  return best;
}

std::int64_t jackson_bound(const Lines& lines, const Windows& windows) {
  std::int64_t best = 0;
  std::vector<MachineOp> ops;
  for (Rank rank = 0; rank < lines.ranks(); ++rank) {
    ops.clear();
    for (const std::uint32_t line : lines.of_rank(rank)) {
      for (std::int32_t j = 0; j < lines.count(line); ++j) {
        const std::size_t op = lines.op(line, j);
        ops.push_back({windows.head[op], lines.duration(line, j), windows.tail[op]});
      }
    }
    best = std::max(best, jackson_preemptive(ops));
  }
  return best;
}

}  // namespace counterflow
