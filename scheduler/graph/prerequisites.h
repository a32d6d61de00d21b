#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/ir/execution_model.h"
#include "scheduler/ir/program.h"

namespace counterflow {

// What holds an instruction back on its own rank, under the rules of an execution model: the one
// before it on its stream, its events, and, as the model says, its communicator, the launch before
// it and its hardware queue. What crosses ranks is the matching of transfers. Whoever runs a
// program, in virtual or in real time, counts these down.
class Prerequisites {
 public:
  // Position of an instruction among all ranks' instructions, rank after rank.
  using Index = std::uint32_t;

  // O(instructions + waits).
  Prerequisites(const Program& program, const ExecutionModel& execution);

  [[nodiscard]] std::size_t size() const { return counts_.size(); }
  [[nodiscard]] Index index(std::size_t rank, std::uint32_t instruction) const {
    return bases_[rank] + instruction;
  }
  [[nodiscard]] std::uint32_t rank(Index index) const { return ranks_[index]; }
  [[nodiscard]] std::uint32_t instruction(Index index) const {
    return index - bases_[ranks_[index]];
  }
  // How many others must have begun or ended before each may begin. [index]
  [[nodiscard]] std::span<const std::uint32_t> counts() const { return counts_; }
  // Whom the begin, and whom the end of an instruction brings one nearer to its own begin.
  [[nodiscard]] std::span<const Index> after_begin(Index index) const {
    return at_begin_.of(index);
  }
  [[nodiscard]] std::span<const Index> after_end(Index index) const { return at_end_.of(index); }

 private:
  struct Edge {
    Index from = 0;
    Index to = 0;
  };
  struct Lists {
    std::vector<std::uint32_t> firsts;  // [index], one more at the end
    std::vector<Index> entries;
    [[nodiscard]] std::span<const Index> of(Index index) const {
      return std::span(entries).subspan(firsts[index], firsts[index + 1] - firsts[index]);
    }
  };
  struct Edges;

  void add_events(const RankProgram& rank, Index base, Edges& edges);
  void add_queues(const Program& program, const RankProgram& rank, Index base,
                  const ExecutionModel& execution, Edges& edges);
  [[nodiscard]] Lists sorted(const std::vector<Edge>& edges) const;

  std::vector<Index> bases_;           // [rank] index of its first instruction
  std::vector<std::uint32_t> ranks_;   // [index]
  std::vector<std::uint32_t> counts_;  // [index]
  Lists at_begin_, at_end_;
};

}  // namespace counterflow
