#include "scheduler/bounds/memory_waits.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "scheduler/bounds/held_memory.h"

// Let M be a rank's limit, s and i two of its stages, and A(s) the sum of what s and the stages of
// the rank that feed it hold (in a stage graph: those with a way to s). Microbatches of a copy run
// in order. Two facts, n being the number of a microbatch:
//
// I. Let s feed i, or be i. If I(i,q) has not ended when F(s,n) begins, q <= n, then at the later
// of the begins of F(s,n) and F(i,q) the rank holds all of A(i) for q and A(s) for q+1..n: their F
// have begun, and none of their I can have ended, since gradients reach those stages from i, and q
// comes first. So A(s) (n-q) + A(i) <= M, and F(s,n) waits for I(i, n-k) with k =
// floor((M-A(i))/A(s)) + 1. For i > s this is what keeps a rank from filling up with early stages
// for ever.
//
// W. Let i feed s, or be s. If W(i,q) has not ended when F(s,n) begins, stage i still holds what it
// keeps for W of q..n-1, and n itself holds A(s). So F(s,n) waits for W(i, n-k) with
// k = floor((M-A(s))/kept(i)) + 1.
namespace counterflow {
namespace {

// The stages of a graph with a way to `stage`, itself included.
std::vector<std::uint8_t> feeders_of(const StageGraph& graph, Stage stage) {
  std::vector<std::uint8_t> feeds(static_cast<std::size_t>(stage) + 1, 0);
  feeds.back() = 1;
  for (Stage s = stage; s > 0; --s) {
    if (feeds[static_cast<std::size_t>(s)] == 0) continue;
    for (const Stage before : graph.predecessors(s)) feeds[static_cast<std::size_t>(before)] = 1;
  }
  return feeds;
}

class MemoryWaits {
 public:
  MemoryWaits(const Problem& problem, const HeldMemory& held, Lines& lines)
      : held_(held), lines_(lines) {
    for (const HeldMemory::Part& part : held.parts) {
      feeders_.push_back(feeders_of(problem.graph, part.chunk.stage));
    }
    for (std::size_t s = 0; s < held.parts.size(); ++s) {
      std::int64_t sum = 0;
      for (std::size_t i = 0; i < held.parts.size(); ++i) {
        if (feeds(i, s)) sum += held.parts[i].whole;
      }
      sums_.push_back(sum);
    }
  }

  void add() {
    for (std::size_t s = 0; s < held_.parts.size(); ++s) {
      for (std::size_t i = 0; i < held_.parts.size(); ++i) {
        if (feeds(s, i)) wait(s, i, OpKind::backward_input, sums_[i], sums_[s]);
        if (feeds(i, s)) wait(s, i, OpKind::backward_weight, sums_[s], held_.parts[i].kept);
      }
    }
  }

 private:
  [[nodiscard]] bool feeds(std::size_t i, std::size_t s) const {
    const Chunk& from = held_.parts[i].chunk;
    const Chunk& to = held_.parts[s].chunk;
    return from.replica == to.replica && from.stage <= to.stage &&
           feeders_[s][static_cast<std::size_t>(from.stage)] != 0;
  }

  // F(s,n) waits for an op of i: `first` is held anyway, and `each` more for every microbatch
  // since.
  void wait(std::size_t s, std::size_t i, OpKind kind, std::int64_t first, std::int64_t each) {
    const std::uint32_t line = lines_.find(OpKind::forward, held_.parts[s].chunk);
    const std::uint32_t other = lines_.find(kind, held_.parts[i].chunk);
    if (line == Lines::kNone || other == Lines::kNone || each == 0 || first > held_.limit) return;
    const std::int64_t shift = (held_.limit - first) / each + 1;
    if (shift < lines_.count(line)) {
      lines_.add_wait(line, {other, static_cast<std::int32_t>(shift), 0});
    }
  }

  const HeldMemory& held_;
  Lines& lines_;
  std::vector<std::vector<std::uint8_t>> feeders_;  // [part][stage]
  std::vector<std::int64_t> sums_;                  // [part] A
};

}  // namespace

void add_memory_waits(const Problem& problem, Lines& lines) {
  for (const HeldMemory& held : held_memory(problem)) MemoryWaits(problem, held, lines).add();
}

}  // namespace counterflow
