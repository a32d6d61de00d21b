#pragma once

#include <cstdint>
#include <queue>
#include <unordered_map>
#include <vector>

#include "scheduler/graph/matching.h"
#include "scheduler/ir/execution_model.h"
#include "scheduler/ir/program.h"
#include "scheduler/ir/timeline.h"
#include "scheduler/problem/links.h"

namespace counterflow::sim {

// Position of an instruction among all ranks' instructions, rank after rank.
using Index = std::uint32_t;

// The discrete-event engine. Every instruction counts what it still waits for: the one before it on
// its stream, its events, and what the execution model adds. When the count is zero it starts, at
// the latest of the times at which these were satisfied.
//
// Only links of limited bandwidth make a choice at run time (who goes first), so only then must
// starts be taken in order of time; without them any order of the work list gives the same times.
class Engine {
 public:
  Engine(const Program& program, const Links& links, const ExecutionModel& execution);

  // Runs until nothing can go on. What never ran stays at [-1, -1).
  void run();
  [[nodiscard]] std::vector<RankTimeline> take() && { return std::move(timelines_); }

 private:
  struct State {
    std::int64_t ready = 0;     // latest prerequisite satisfied so far
    std::uint32_t pending = 0;  // prerequisites not satisfied yet
    std::uint32_t rank = 0;
  };
  struct Start {
    std::int64_t at;
    Index index;
    bool operator>(const Start& other) const {
      return at != other.at ? at > other.at : index > other.index;
    }
  };
  // One end of a message while it is under way.
  struct TransferState {
    std::int64_t posted = -1;   // when its instruction started
    std::int64_t arrival = -1;  // of a buffered message whose receive is not posted yet
  };

  void number_instructions();
  void link_events();
  void link_queues();
  void link_after(std::vector<Index>& next, Index earlier, Index later);
  [[nodiscard]] bool releases_stream_at_start(const RankProgram& rank,
                                              const Instruction& instruction) const;

  void satisfy(Index index, std::int64_t at);
  void satisfy_next(const std::vector<Index>& next, Index index, std::int64_t at);
  void start(Index index);
  void start_transfers(Index index, std::int64_t at);
  void meet(std::size_t rank, std::uint32_t transfer, std::int64_t at);
  void move(std::size_t rank, std::uint32_t send, Matching::End receive, std::int64_t at);
  void end_transfer(std::size_t rank, std::uint32_t transfer, std::int64_t at);
  void finish(Index index, std::int64_t at);

  [[nodiscard]] const Instruction& instruction(Index index) const {
    const std::uint32_t rank = states_[index].rank;
    return program_.ranks[rank].instructions[index - bases_[rank]];
  }
  [[nodiscard]] Interval& interval(Index index) {
    const std::uint32_t rank = states_[index].rank;
    return timelines_[rank].instructions[index - bases_[rank]];
  }

  const Program& program_;
  const Links& links_;
  const ExecutionModel& execution_;
  const Matching matching_;
  std::vector<RankTimeline> timelines_;
  std::vector<Index> bases_;  // [rank] index of its first instruction
  std::vector<State> states_;
  // Successors, kNone where there is none; empty where the execution model has no such rule.
  std::vector<Index> next_on_stream_, next_on_communicator_, next_launch_, next_in_queue_;
  // Who waits for the event an instruction records: [index] first entry of a linked list.
  struct Waiter {
    Index index = 0;
    std::uint32_t next = kNone;
  };
  std::vector<std::uint32_t> first_waiter_;
  std::vector<Waiter> waiters_;
  std::vector<std::vector<TransferState>> transfers_;          // [rank][transfer]
  std::vector<std::uint32_t> ends_left_;                       // [index] transfers not ended yet
  std::unordered_map<std::uint64_t, std::int64_t> link_free_;  // [source, destination]
  bool in_time_order_;
  std::vector<Start> work_;  // a stack
  std::priority_queue<Start, std::vector<Start>, std::greater<>> by_time_;
};

}  // namespace counterflow::sim
