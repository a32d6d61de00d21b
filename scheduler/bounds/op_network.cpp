#include "scheduler/bounds/op_network.h"

#include "scheduler/bounds/held_memory.h"

namespace counterflow {
namespace {

OpNetwork::Store store_of(const Lines& lines, const HeldMemory& held) {
  OpNetwork::Store store;
  store.rank = static_cast<std::uint32_t>(held.rank);
  store.limit = held.limit;
  const auto add = [&](std::uint32_t line, std::int32_t number, std::int64_t need,
                       std::int64_t give) {
    store.ops.push_back(static_cast<std::uint32_t>(lines.op(line, number)));
    store.need.push_back(need);
    store.give.push_back(give);
    store.cell.push_back(store.cells);
  };
  for (const HeldMemory::Part& part : held.parts) {
    const std::uint32_t forward = lines.find(OpKind::forward, part.chunk);
    const std::uint32_t gradient = lines.find(OpKind::backward_input, part.chunk);
    const std::uint32_t weight = lines.find(OpKind::backward_weight, part.chunk);
    if (forward == Lines::kNone || part.whole == 0) continue;
    const std::int64_t kept = weight == Lines::kNone ? 0 : part.kept;
    for (std::int32_t j = 0; j < lines.count(forward); ++j) {
      add(forward, j, part.whole, 0);
      if (kept < part.whole) add(gradient, j, 0, part.whole - kept);
      if (kept > 0) add(weight, j, 0, kept);
      ++store.cells;
    }
  }
  return store;
}

}  // namespace

OpNetwork::OpNetwork(const Problem& problem, const Lines& lines)
    : before(lines.ops()),
      after(lines.ops()),
      of_rank(static_cast<std::size_t>(lines.ranks())),
      words((lines.ops() + 63) / 64) {
  duration.reserve(lines.ops());
  for (std::size_t line = 0; line < lines.size(); ++line) {
    for (std::int32_t j = 0; j < lines.count(line); ++j) {
      of_rank[static_cast<std::size_t>(lines[line].rank)].push_back(
          static_cast<std::uint32_t>(duration.size()));
      duration.push_back(lines.duration(line, j));
      rank.push_back(static_cast<std::uint32_t>(lines[line].rank));
    }
  }
  add_arcs(lines);
  close();
  if (!lines.uniform()) return;
  for (const HeldMemory& held : held_memory(problem)) stores.push_back(store_of(lines, held));
}

void OpNetwork::add_arcs(const Lines& lines) {
  for (std::int32_t j = 0; j < lines.most(); ++j) {
    for (std::size_t line = 0; line < lines.size(); ++line) {
      if (j >= lines.count(line)) continue;
      const auto op = static_cast<std::uint32_t>(lines.op(line, j));
      order.push_back(op);
      for (const Line::Wait& wait : lines[line].waits) {
        if (j < wait.shift) continue;
        const auto other = static_cast<std::uint32_t>(lines.op(wait.line, j - wait.shift));
        before[op].push_back({other, wait.delay});
        after[other].push_back({op, wait.delay});
      }
    }
  }
}

void OpNetwork::close() {
  earlier.assign(size() * words, 0);
  for (const std::uint32_t op : order) {
    std::uint64_t* const own = &earlier[op * words];
    for (const Arc& arc : before[op]) {
      const std::uint64_t* const other = &earlier[arc.op * words];
      for (std::size_t word = 0; word < words; ++word) own[word] |= other[word];
      own[arc.op / 64] |= std::uint64_t{1} << (arc.op % 64);
    }
  }
}

}  // namespace counterflow
