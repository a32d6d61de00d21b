#include "scheduler/bounds/windows.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>

#include "scheduler/bounds/edge_finding.h"

namespace counterflow {

WindowTest::WindowTest(const Problem& problem, const Lines& lines)
    : network_(problem, lines), ways_(longest_paths(lines)) {
  memory_.reserve(network_.stores.size());
  for (const OpNetwork::Store& store : network_.stores) memory_.emplace_back(network_, store);
}

bool WindowTest::may_exist(std::int64_t makespan, int rounds) const {
  Windows windows = ways_;
  Touched touched(network_.of_rank.size(), 1);
  if (!narrow(windows, makespan, rounds, touched)) return false;
  const Side side{network_, windows.head, windows.tail, touched, makespan, false};
  return std::all_of(memory_.begin(), memory_.end(),
                     [&](const MemoryWindows& memory) { return memory.stretches_fit(side); });
}

bool WindowTest::narrow(Windows& windows, std::int64_t makespan, int rounds, Rank changed) const {
  Touched touched(network_.of_rank.size(), 0);
  touched[static_cast<std::size_t>(changed)] = 1;
  return narrow(windows, makespan, rounds, touched);
}

bool WindowTest::narrow(Windows& now, std::int64_t makespan, int rounds, Touched& touched) const {
  Side forward{network_, now.head, now.tail, touched, makespan, false};
  Side backward{network_, now.tail, now.head, touched, makespan, true};
  Touched ranks(touched.size());
  for (int round = 0; round < rounds; ++round) {
    if (!propagate(forward, backward)) return false;
    if (std::find(touched.begin(), touched.end(), 1) == touched.end()) return true;
    ranks.swap(touched);
    std::fill(touched.begin(), touched.end(), std::uint8_t{0});
    if (!tighten(forward, ranks) || !tighten(backward, ranks)) return false;
    const auto fits = [&](const MemoryWindows& memory) {
      return ranks[memory.rank()] == 0 || memory.area_fits(forward);
    };
    if (!std::all_of(memory_.begin(), memory_.end(), fits)) return false;
  }
  return propagate(forward, backward);
}

std::int64_t WindowTest::longest() const {
  std::int64_t sum = 0;
  for (std::size_t op = 0; op < network_.size(); ++op) {
    std::int64_t delay = 0;
    for (const OpNetwork::Arc& arc : network_.before[op]) delay = std::max(delay, arc.delay);
    sum += network_.duration[op] + delay;
  }
  return sum;
}

std::int64_t WindowTest::grain() const {
  std::int64_t grain = 0;
  for (std::size_t op = 0; op < network_.size(); ++op) {
    grain = std::gcd(grain, network_.duration[op]);
    for (const OpNetwork::Arc& arc : network_.before[op]) grain = std::gcd(grain, arc.delay);
  }
  return std::max<std::int64_t>(1, grain);
}

// Longest ways, from the heads and tails there are.
bool WindowTest::propagate(Side& forward, Side& backward) const {
  for (const std::uint32_t op : network_.order) {
    for (const OpNetwork::Arc& arc : forward.waits(op)) {
      forward.raise(op, forward.earliest_end(arc.op) + arc.delay);
    }
  }
  for (auto op = network_.order.rbegin(); op != network_.order.rend(); ++op) {
    for (const OpNetwork::Arc& arc : backward.waits(*op)) {
      backward.raise(*op, backward.earliest_end(arc.op) + arc.delay);
    }
    if (forward.earliest_end(*op) > forward.latest_end(*op)) return false;
  }
  return true;
}

bool WindowTest::tighten(Side& side, const Touched& ranks) const {
  std::vector<TimedOp> ops;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    if (ranks[rank] == 0) continue;
    open_ops(side, network_.of_rank[rank], ops);
    if (!find_edges(ops)) return false;
    for (const TimedOp& op : ops) side.raise(op.id, op.earliest);
  }
  return std::all_of(memory_.begin(), memory_.end(), [&](const MemoryWindows& memory) {
    return ranks[memory.rank()] == 0 || memory.tighten(side);
  });
}

// The ops of a rank, but for those settled before or after all others: they bind nobody.
void WindowTest::open_ops(const Side& side, const std::vector<std::uint32_t>& of_rank,
                          std::vector<TimedOp>& ops) const {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  std::int64_t last = 0;
  for (const std::uint32_t op : of_rank) {
    if (side.settled(op)) continue;
    first = std::min(first, side.head[op]);
    last = std::max(last, side.latest_end(op));
  }
  ops.clear();
  for (const std::uint32_t op : of_rank) {
    const TimedOp timed{side.head[op], side.latest_end(op), network_.duration[op], op};
    if (side.settled(op) && (timed.latest <= first || timed.earliest >= last)) continue;
    ops.push_back(timed);
  }
}

std::int64_t window_bound(const Problem& problem, const Lines& lines, std::int64_t known) {
  const WindowTest test(problem, lines);
  // Times are whole multiples of the grain, and so is the length of any critical path.
  const std::int64_t grain = test.grain();
  const auto up = [grain](std::int64_t time) { return (time + grain - 1) / grain * grain; };
  const std::int64_t resolution = std::max(grain, up(known / kWindowResolution));
  const std::int64_t longest = test.longest();
  std::int64_t refuted = up(known) - grain;  // no makespan up to this
  std::int64_t step = grain;
  for (; !test.may_exist(refuted + step); step = std::max(2 * step, resolution)) {
    if (refuted + step >= longest) return known;
    refuted += step;
  }
  for (std::int64_t open = refuted + step; open - refuted > resolution;) {
    const std::int64_t middle = refuted + up((open - refuted) / 2);
    (test.may_exist(middle) ? open : refuted) = middle;
  }
  return refuted + grain;
}

}  // namespace counterflow
