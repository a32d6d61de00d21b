#include "scheduler/bounds/lines.h"

#include <algorithm>

namespace counterflow {
namespace {

constexpr std::size_t kKinds = 3;

std::size_t column(OpKind kind) {
  if (kind == OpKind::forward) return 0;
  return makes_input_gradient(kind) ? 1 : 2;
}

}  // namespace

Lines::Lines(const Problem& problem)
    : uniform_(problem.costs.uniform()),
      stages_(static_cast<std::size_t>(problem.stages())),
      of_rank_(static_cast<std::size_t>(problem.ranks())) {
  const int replicas = problem.placement.replicas();
  counts_[0] = replicas == 2 ? (problem.microbatches + 1) / 2 : problem.microbatches;
  counts_[1] = problem.microbatches - counts_[0];
  index_.assign(static_cast<std::size_t>(replicas) * stages_ * kKinds, kNone);
  first_op_ = {0};
  for (int replica = 0; replica < replicas; ++replica) {
    if (counts_[replica] == 0) continue;
    const auto copy = static_cast<std::uint8_t>(replica);
    for (Stage stage = 0; stage < problem.stages(); ++stage) {
      add_line(problem, OpKind::forward, {stage, copy});
    }
    for (Stage stage = problem.stages() - 1; stage >= 0; --stage) {
      if (!problem.needs_backward_input(stage)) continue;
      const bool whole = problem.split_backward == SplitBackward::full;
      const bool weight = problem.needs_backward_weight(stage);
      add_line(problem, whole && weight ? OpKind::backward : OpKind::backward_input, {stage, copy});
      if (weight && !whole) add_line(problem, OpKind::backward_weight, {stage, copy});
    }
  }
  add_data_waits(problem);
  if (!uniform_) return;
  for (std::uint32_t line = 0; line < size(); ++line) add_wait(line, {line, 1, 0});
}

void Lines::add_line(const Problem& problem, OpKind kind, const Chunk& chunk) {
  const auto id = static_cast<std::uint32_t>(lines_.size());
  const Rank rank = problem.placement.rank_of(chunk.stage, chunk.replica);
  lines_.push_back({kind, chunk, rank, {}});
  const auto stage = static_cast<std::size_t>(chunk.stage);
  index_[(chunk.replica * stages_ + stage) * kKinds + column(kind)] = id;
  of_rank_[static_cast<std::size_t>(rank)].push_back(id);
  const std::int32_t count = counts_[chunk.replica];
  const Microbatch first = chunk.replica == 0 ? 0 : counts_[0];
  for (std::int32_t j = 0; j < (uniform_ ? 1 : count); ++j) {
    durations_.push_back(
        problem.costs
            .duration({kind, chunk.replica, static_cast<std::uint16_t>(chunk.stage), first + j})
            .count());
  }
  first_op_.push_back(first_op_.back() + static_cast<std::size_t>(count));
}

std::uint32_t Lines::find(OpKind kind, const Chunk& chunk) const {
  return index_[(chunk.replica * stages_ + static_cast<std::size_t>(chunk.stage)) * kKinds +
                column(kind)];
}

void Lines::add_data_waits(const Problem& problem) {
  const auto hop = [&](Stage from, Stage to, std::uint8_t replica) {
    return problem.hop(from, to, replica).count();
  };
  for (std::uint32_t line = 0; line < size(); ++line) {
    const Chunk chunk = lines_[line].chunk;
    const auto wait_for = [&](OpKind kind, Stage stage) {
      const std::uint32_t other = find(kind, {stage, chunk.replica});
      if (other != kNone) add_wait(line, {other, 0, hop(stage, chunk.stage, chunk.replica)});
    };
    if (lines_[line].kind == OpKind::forward) {
      for (const Stage before : problem.graph.predecessors(chunk.stage)) {
        wait_for(OpKind::forward, before);
      }
    } else if (lines_[line].kind == OpKind::backward_weight) {
      wait_for(OpKind::backward_input, chunk.stage);
    } else {
      wait_for(OpKind::forward, chunk.stage);
      for (const Stage next : problem.graph.successors(chunk.stage)) {
        wait_for(OpKind::backward_input, next);
      }
    }
  }
}

Windows longest_paths(const Lines& lines) {
  Windows result{std::vector<std::int64_t>(lines.ops(), 0),
                 std::vector<std::int64_t>(lines.ops(), 0)};
  for (std::int32_t j = 0; j < lines.most(); ++j) {
    for (std::size_t line = 0; line < lines.size(); ++line) {
      if (j >= lines.count(line)) continue;
      std::int64_t& head = result.head[lines.op(line, j)];
      for (const Line::Wait& wait : lines[line].waits) {
        const std::int32_t other = j - wait.shift;
        if (other < 0) continue;
        head = std::max(head, result.head[lines.op(wait.line, other)] +
                                  lines.duration(wait.line, other) + wait.delay);
      }
    }
  }
  for (std::int32_t j = lines.most() - 1; j >= 0; --j) {
    for (std::size_t line = lines.size(); line-- > 0;) {
      if (j >= lines.count(line)) continue;
      const std::int64_t after = result.tail[lines.op(line, j)] + lines.duration(line, j);
      for (const Line::Wait& wait : lines[line].waits) {
        if (j < wait.shift) continue;
        std::int64_t& tail = result.tail[lines.op(wait.line, j - wait.shift)];
        tail = std::max(tail, after + wait.delay);
      }
    }
  }
  return result;
}

}  // namespace counterflow
