#include "scheduler/bounds/memory_windows.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "scheduler/bounds/edge_finding.h"
#include "scheduler/bounds/jackson.h"

namespace counterflow {
namespace {

constexpr std::size_t kMostHoldings = 48;
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min() / 4;

// The longest ways from the begin of one op to the end of every other; negative: none.
std::vector<std::int64_t> ways_from(const OpNetwork& network, std::uint32_t from) {
  std::vector<std::int64_t> end(network.size(), kNever);
  for (const std::uint32_t op : network.order) {
    std::int64_t begin = op == from ? 0 : kNever;
    for (const OpNetwork::Arc& arc : network.before[op]) {
      begin = std::max(begin, end[arc.op] + arc.delay);
    }
    if (begin >= 0) end[op] = begin + network.duration[op];
  }
  return end;
}

}  // namespace

MemoryWindows::MemoryWindows(const OpNetwork& network, const OpNetwork::Store& store)
    : store_(store), cells_(store.cells) {
  measure(network);
  std::int64_t least_taken = std::numeric_limits<std::int64_t>::max() / 2;
  std::int64_t least_held = least_taken;
  for (const Cell& cell : cells_) {
    least_taken = std::min(least_taken, cell.taken_first);
    least_held = std::min(least_held, cell.held_last);
  }
  exclusive_ = least_taken + least_held > store.limit;
}

// Ops of a cell stand in the order they run.
void MemoryWindows::measure(const OpNetwork& network) {
  std::vector<std::int64_t> end;
  for (std::size_t i = 0; i < store_.ops.size(); ++i) {
    Cell& cell = cells_[store_.cell[i]];
    if (store_.need[i] > 0) {
      cell.first = store_.ops[i];
      cell.taken_first = store_.need[i];
      end = ways_from(network, cell.first);
      continue;
    }
    cell.last = store_.ops[i];
    cell.held_last = store_.give[i];
    cell.life = end[cell.last];
    holdings_.push_back({cell.first, cell.last, cell.life, static_cast<double>(store_.give[i])});
    cell.area += static_cast<double>(store_.give[i]) * static_cast<double>(cell.life);
  }
}

bool MemoryWindows::tighten(Side& side) const {
  if (exclusive_ && !lives_fit(side)) return false;
  std::vector<std::size_t> releases;
  for (std::size_t i = 0; i < store_.ops.size(); ++i) {
    if (side.give(store_)[i] > 0) releases.push_back(i);
  }
  std::sort(releases.begin(), releases.end(), [&](std::size_t a, std::size_t b) {
    return side.earliest_end(store_.ops[a]) < side.earliest_end(store_.ops[b]);
  });
  for (std::size_t i = 0; i < store_.ops.size(); ++i) {
    if (!side.settled(store_.ops[i]) && side.need(store_)[i] > 0 && !push(side, i, releases))
      return false;
  }
  return true;
}

// Where no two cells fit at once, their lives are ops on a machine.
bool MemoryWindows::lives_fit(Side& side) const {
  std::vector<TimedOp> lives;
  for (const Cell& cell : cells_) {
    const std::uint32_t first = side.backward ? cell.last : cell.first;
    const std::uint32_t last = side.backward ? cell.first : cell.last;
    lives.push_back({side.head[first], side.latest_end(last), cell.life, first});
  }
  if (!find_edges(lives)) return false;
  for (const TimedOp& life : lives) side.raise(life.id, life.earliest);
  return true;
}

// The area argument for every set of cells at once: a cell is an op that needs its area divided by
// the limit, on a machine that may interrupt it.
bool MemoryWindows::area_fits(const Side& side) const {
  constexpr std::int64_t kScale = 1024;  // so that rounding down costs little
  if (store_.limit <= 0) return true;    // pushing refutes it
  if (side.makespan > std::numeric_limits<std::int64_t>::max() / (4 * kScale)) return true;
  std::vector<MachineOp> ops;
  for (const Cell& cell : cells_) {
    const double time = std::min(cell.area / static_cast<double>(store_.limit) * (1 - 1e-12),
                                 static_cast<double>(side.makespan) + 1);
    ops.push_back({side.head[cell.first] * kScale, static_cast<std::int64_t>(time * kScale),
                   side.tail[cell.last] * kScale});
  }
  return jackson_preemptive(ops) <= side.makespan * kScale;
}

// The area argument for stretches of time in place of sets of cells (energetic reasoning): whatever
// must be held between two moments where some window begins or ends.
bool MemoryWindows::stretches_fit(const Side& side) const {
  if (holdings_.size() > kMostHoldings) return true;
  std::vector<std::int64_t> begins;
  std::vector<std::int64_t> ends;
  for (const Holding& holding : holdings_) {
    const std::int64_t latest = side.latest_begin(holding.from);
    const std::int64_t earliest = side.earliest_end(holding.to);
    begins.insert(begins.end(), {side.head[holding.from], latest, earliest});
    ends.insert(ends.end(), {side.latest_end(holding.to), latest, earliest});
  }
  for (auto* moments : {&begins, &ends}) {
    std::sort(moments->begin(), moments->end());
    moments->erase(std::unique(moments->begin(), moments->end()), moments->end());
  }
  for (const std::int64_t begin : begins) {
    for (const std::int64_t end : ends) {
      if (end <= begin) continue;
      const double there = static_cast<double>(store_.limit) * static_cast<double>(end - begin);
      if (held_in(side, begin, end) > there * (1 + 1e-12)) return false;
    }
  }
  return true;
}

// The least memory times time between two moments: each holding as early or as late as it can be.
double MemoryWindows::held_in(const Side& side, std::int64_t begin, std::int64_t end) const {
  double sum = 0;
  for (const Holding& holding : holdings_) {
    const std::int64_t latest = side.latest_begin(holding.from);
    const std::int64_t earliest = side.earliest_end(holding.to);
    const std::int64_t shifted =
        std::min({holding.life, end - begin, earliest - begin, end - latest});
    const std::int64_t surely = std::min(end, earliest) - std::max(begin, latest);
    sum += holding.amount * static_cast<double>(std::max({std::int64_t{0}, shifted, surely}));
  }
  return sum;
}

// Does what `other` takes come before what `index` takes, in every schedule within the makespan?
bool MemoryWindows::surely_before(const Side& side, std::size_t other, std::size_t index) const {
  const std::uint32_t first = store_.ops[other];
  const std::uint32_t second = store_.ops[index];
  if (side.precedes(first, second)) return true;
  if (side.precedes(second, first)) return false;
  if (side.earliest_end(second) > side.latest_begin(first)) return true;
  // The two may not be held together, and it is too late for `other` once the cell of `index` has
  // been let go. Until then the cell holds at least its last release, or, seen backward, where it
  // is let go at once, what `index` took.
  const Cell& cell = cells_[store_.cell[index]];
  const std::uint32_t last = side.backward ? cell.first : cell.last;
  const std::int64_t held = side.backward ? side.need(store_)[index] : cell.held_last;
  return store_.cell[other] != store_.cell[index] &&
         side.need(store_)[other] + held > store_.limit &&
         side.earliest_end(last) > side.latest_begin(first);
}

// What is surely taken before an op, and by the op itself, must fit: it begins after enough of it
// can have been released, the earliest releases first.
bool MemoryWindows::push(Side& side, std::size_t index,
                         const std::vector<std::size_t>& releases) const {
  const std::vector<std::int64_t>& need = side.need(store_);
  std::int64_t held = need[index];
  std::vector<std::int64_t> taken(cells_.size(), 0);
  for (std::size_t i = 0; i < store_.ops.size(); ++i) {
    if (need[i] == 0 || i == index || !surely_before(side, i, index)) continue;
    taken[store_.cell[i]] += need[i];
    held += need[i];
  }
  const std::uint32_t op = store_.ops[index];
  for (const std::size_t release : releases) {
    if (held <= store_.limit) return true;
    if (side.precedes(op, store_.ops[release])) continue;
    std::int64_t& left = taken[store_.cell[release]];
    const std::int64_t freed = std::min(left, side.give(store_)[release]);
    if (freed == 0) continue;
    left -= freed;
    held -= freed;
    if (held > store_.limit) continue;
    side.raise(op, side.earliest_end(store_.ops[release]));
  }
  return held <= store_.limit;
}

}  // namespace counterflow
