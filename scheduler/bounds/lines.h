#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/ir/op.h"
#include "scheduler/problem/problem.h"

namespace counterflow {

// One op kind of one stage copy, over the microbatches of that copy. What its ops wait for looks
// the same for each of them, so it is said once: op j begins no earlier than `delay` after op j -
// shift of another line has ended (no wait where j < shift).
struct Line {
  struct Wait {
    std::uint32_t line = 0;
    std::int32_t shift = 0;
    std::int64_t delay = 0;
  };
  OpKind kind = OpKind::none;
  Chunk chunk;
  Rank rank = 0;
  std::vector<Wait> waits;
};

// The ops every schedule of a problem has, as lines, with what holds between them in any schedule.
// Where the backward may be split it is, since B is I directly followed by W. Lines stand in an
// order in which every wait with shift 0 goes to an earlier line.
//
// A value made once for a problem; durations and hops in ns. Bandwidth counts as part of a hop.
class Lines {
 public:
  // O(stages * (stages on a rank + degree)), and O(ops) memory for durations that differ.
  explicit Lines(const Problem& problem);

  [[nodiscard]] std::size_t size() const { return lines_.size(); }
  [[nodiscard]] const Line& operator[](std::size_t line) const { return lines_[line]; }
  // Microbatches of a line.
  [[nodiscard]] std::int32_t count(std::size_t line) const {
    return counts_[lines_[line].chunk.replica];
  }
  [[nodiscard]] Microbatch microbatch(std::size_t line, std::int32_t number) const {
    return number + (lines_[line].chunk.replica == 0 ? 0 : counts_[0]);
  }
  [[nodiscard]] std::int32_t most() const { return counts_[0]; }
  [[nodiscard]] std::int64_t duration(std::size_t line, std::int32_t number) const {
    return durations_[uniform_ ? line : op(line, number)];
  }
  // Are all microbatches of a copy equal? Then, and only then, they run in order in some best
  // schedule, and the waits hold what follows from order and memory limits as well.
  [[nodiscard]] bool uniform() const { return uniform_; }
  // Ops are numbered line by line: 0..ops()-1.
  [[nodiscard]] std::size_t op(std::size_t line, std::int32_t number) const {
    return first_op_[line] + static_cast<std::size_t>(number);
  }
  [[nodiscard]] std::size_t ops() const { return first_op_.back(); }
  // The lines of a rank, ascending.
  [[nodiscard]] std::span<const std::uint32_t> of_rank(Rank rank) const {
    return of_rank_[static_cast<std::size_t>(rank)];
  }
  [[nodiscard]] int ranks() const { return static_cast<int>(of_rank_.size()); }
  static constexpr std::uint32_t kNone = 0xffffffffU;
  // The line of a kind of a stage copy (I where B is asked for and the other way round); kNone if
  // the problem needs no such op.
  [[nodiscard]] std::uint32_t find(OpKind kind, const Chunk& chunk) const;

  void add_wait(std::uint32_t line, const Line::Wait& wait) { lines_[line].waits.push_back(wait); }

 private:
  void add_line(const Problem& problem, OpKind kind, const Chunk& chunk);
  void add_data_waits(const Problem& problem);

  bool uniform_ = true;
  std::size_t stages_ = 0;
  std::int32_t counts_[2] = {0, 0};
  std::vector<Line> lines_;
  std::vector<std::uint32_t> index_;     // [replica][stage][F, gradient, W]
  std::vector<std::size_t> first_op_;    // [line], and the number of ops
  std::vector<std::int64_t> durations_;  // [line] where uniform, else [op]
  std::vector<std::vector<std::uint32_t>> of_rank_;
};

// For each op, over all waits: the least time before it begins, and the least time from its end to
// the end of everything.
struct Windows {
  std::vector<std::int64_t> head;  // [op]
  std::vector<std::int64_t> tail;  // [op]
};
// O(ops * waits a line).
[[nodiscard]] Windows longest_paths(const Lines& lines);

}  // namespace counterflow
