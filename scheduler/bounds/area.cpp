#include "scheduler/bounds/area.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "scheduler/bounds/held_memory.h"

// Let stage s hold `whole` from the begin of F to the end of I (or B), and `kept` of it to the end
// of W. The way back takes at least R(s) = F + max over the stages t that s feeds of (hop + R(t) +
// hop)
// + I. So a microbatch covers an area of at least whole * R(s) + kept * W under the limit M. The
// rank holds nothing before its earliest F can begin, nor after its last release, behind which lies
// the shortest tail of a release. Hence M (C - head - tail) >= the sum of all areas.
namespace counterflow {
namespace {

constexpr double kLongest = 1e18;

class Area {
 public:
  Area(const Problem& problem, const Lines& lines, const Windows& windows)
      : problem_(problem), lines_(lines), windows_(windows) {
    const auto replicas = static_cast<std::size_t>(problem.placement.replicas());
    ways_.assign(replicas * static_cast<std::size_t>(problem.stages()), {});
    for (std::size_t line = 0; line < lines.size(); ++line) {
      if (makes_input_gradient(lines[line].kind)) measure(line);
    }
  }

  [[nodiscard]] std::int64_t of(const HeldMemory& held) const {
    constexpr std::int64_t kLong = std::numeric_limits<std::int64_t>::max();
    std::int64_t head = kLong;
    std::int64_t tail = kLong;
    double area = 0;
    for (const HeldMemory::Part& part : held.parts) {
      const std::uint32_t forward = lines_.find(OpKind::forward, part.chunk);
      if (forward == Lines::kNone) continue;
      head = std::min(head, windows_.head[lines_.op(forward, 0)]);
      tail = std::min(tail, tail_of(part.chunk));
      area += covered(held, part, forward);
    }
    if (head == kLong || held.limit <= 0) return 0;
    // A double is exact to one part in 2^53; what it may be too large by is taken off. Where
    // nothing fits at all the quotient may be any size.
    const double time = std::min(area / static_cast<double>(held.limit) * (1 - 1e-12), kLongest);
    return head + static_cast<std::int64_t>(std::ceil(time)) + tail;
  }

 private:
  [[nodiscard]] std::int64_t cells(std::size_t line) const {
    return lines_.uniform() ? 1 : lines_.count(line);
  }
  std::vector<std::int64_t>& way(const Chunk& chunk) {
    return ways_[chunk.replica * static_cast<std::size_t>(problem_.stages()) +
                 static_cast<std::size_t>(chunk.stage)];
  }
  [[nodiscard]] const std::vector<std::int64_t>& way(const Chunk& chunk) const {
    return ways_[chunk.replica * static_cast<std::size_t>(problem_.stages()) +
                 static_cast<std::size_t>(chunk.stage)];
  }

  // R of one stage copy; those it feeds come earlier in the lines.
  void measure(std::size_t gradient) {
    const Chunk& chunk = lines_[gradient].chunk;
    const std::uint32_t forward = lines_.find(OpKind::forward, chunk);
    for (std::int32_t j = 0; j < cells(gradient); ++j) {
      std::int64_t beyond = 0;
      for (const Stage next : problem_.graph.successors(chunk.stage)) {
        const Chunk fed{next, chunk.replica};
        const std::int64_t there = hop(forward, lines_.find(OpKind::forward, fed));
        const std::int64_t back =
            hop(lines_.find(OpKind::backward_input, fed), static_cast<std::uint32_t>(gradient));
        beyond = std::max(beyond, there + way(fed)[static_cast<std::size_t>(j)] + back);
      }
      way(chunk).push_back(lines_.duration(forward, j) + beyond + lines_.duration(gradient, j));
    }
  }
  [[nodiscard]] std::int64_t hop(std::uint32_t from, std::uint32_t to) const {
    for (const Line::Wait& wait : lines_[to].waits) {
      if (wait.line == from && wait.shift == 0) return wait.delay;
    }
    return 0;
  }

  [[nodiscard]] std::int64_t tail_of(const Chunk& chunk) const {
    std::uint32_t last = lines_.find(OpKind::backward_weight, chunk);
    if (last == Lines::kNone) last = lines_.find(OpKind::backward_input, chunk);
    std::int64_t tail = std::numeric_limits<std::int64_t>::max();
    for (std::int32_t j = 0; j < lines_.count(last); ++j) {
      tail = std::min(tail, windows_.tail[lines_.op(last, j)]);
    }
    return tail;
  }

  // Memory times time of all microbatches of one stage copy.
  [[nodiscard]] double covered(const HeldMemory& held, const HeldMemory::Part& part,
                               std::uint32_t forward) const {
    const std::uint32_t weight = lines_.find(OpKind::backward_weight, part.chunk);
    double area = 0;
    for (std::int32_t j = 0; j < cells(forward); ++j) {
      const Microbatch mb = lines_.microbatch(forward, j);
      const auto back = static_cast<double>(way(part.chunk)[static_cast<std::size_t>(j)]);
      area += held.at_least(part.whole, mb) * back;
      if (weight == Lines::kNone) continue;
      area += held.at_least(part.kept, mb) * static_cast<double>(lines_.duration(weight, j));
    }
    return lines_.uniform() ? area * lines_.count(forward) : area;
  }

  const Problem& problem_;
  const Lines& lines_;
  const Windows& windows_;
  std::vector<std::vector<std::int64_t>> ways_;  // [replica * stages + stage][microbatch] R
};

}  // namespace

std::int64_t area_bound(const Problem& problem, const Lines& lines, const Windows& windows) {
  const Area area(problem, lines, windows);
  std::int64_t best = 0;
  for (const HeldMemory& held : held_memory(problem)) best = std::max(best, area.of(held));
  return best;
}

}  // namespace counterflow
