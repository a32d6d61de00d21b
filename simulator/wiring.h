#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/graph/matching.h"
#include "scheduler/ir/execution_model.h"
#include "scheduler/ir/program.h"
#include "scheduler/problem/links.h"

namespace counterflow::sim {

// Position of an instruction among all ranks' instructions, rank after rank.
using Index = std::uint32_t;

// What every run of a program has in common: who waits for whom, under the rules of the execution
// model, and what everything costs. Built once, then read by any number of engines and threads.
// The program, links and execution model must outlive it.
class Wiring {
 public:
  // O(instructions + transfers).
  Wiring(const Program& program, const Links& links, const ExecutionModel& execution);

  // What an instruction still waits for before the run: the one before it on its stream, its
  // events, and what the execution model adds.
  struct Start {
    std::uint32_t pending = 0;
    std::uint32_t rank = 0;
  };
  // A collective that its members run together.
  struct Meeting {
    std::uint32_t members = 0;  // how many must come
    std::uint32_t first = 0;    // into meeting_members()
    bool possible = true;       // false: they do not agree on what to run, so it never starts
  };

  [[nodiscard]] const Program& program() const { return program_; }
  [[nodiscard]] const Links& links() const { return links_; }
  [[nodiscard]] const ExecutionModel& execution() const { return execution_; }
  [[nodiscard]] const Matching& matching() const { return matching_; }

  [[nodiscard]] std::size_t size() const { return starts_.size(); }
  [[nodiscard]] const std::vector<Start>& starts() const { return starts_; }
  [[nodiscard]] Index base(std::size_t rank) const { return bases_[rank]; }
  [[nodiscard]] std::uint32_t rank_of(Index index) const { return starts_[index].rank; }
  [[nodiscard]] const Instruction& instruction(Index index) const {
    const std::uint32_t rank = starts_[index].rank;
    return program_.ranks[rank].instructions[index - bases_[rank]];
  }
  // A transfer's number among those of all ranks.
  [[nodiscard]] std::uint32_t message(std::size_t rank, std::uint32_t transfer) const {
    return transfer_bases_[rank] + transfer;
  }
  [[nodiscard]] std::uint32_t messages() const { return messages_; }
  // How long each instruction takes from its start, transfers excepted.
  [[nodiscard]] const std::vector<std::int64_t>& durations() const { return durations_; }
  // Does the stream go on as soon as this transfer has begun?
  [[nodiscard]] bool releases_stream_at_start(Index index) const;

  // Successors, kNone where there is none; empty where the execution model has no such rule.
  std::vector<Index> next_on_stream, next_on_communicator, next_launch, next_in_queue;
  // Calls `each` with everyone who waits for the event an instruction records.
  template <typename Each>
  void for_waiters(Index index, Each each) const {
    for (std::uint32_t entry = first_waiter_[index]; entry != kNone; entry = waiters_[entry].next) {
      each(waiters_[entry].index);
    }
  }
  // The meeting a collective belongs to, kNone for anything else.
  [[nodiscard]] std::uint32_t meeting_of(Index index) const {
    return meeting_of_.empty() ? kNone : meeting_of_[index];
  }
  [[nodiscard]] const std::vector<Meeting>& meetings() const { return meetings_; }
  [[nodiscard]] std::span<const Index> members(const Meeting& meeting) const {
    return std::span(meeting_members_).subspan(meeting.first, meeting.members);
  }

 private:
  void number_instructions();
  void link_events();
  void link_queues();
  void link_after(std::vector<Index>& next, Index earlier, Index later);
  void link_collectives();

  const Program& program_;
  const Links& links_;
  const ExecutionModel& execution_;
  const Matching matching_;
  std::vector<Index> bases_;                   // [rank] index of its first instruction
  std::vector<std::uint32_t> transfer_bases_;  // [rank]
  std::uint32_t messages_ = 0;
  std::vector<Start> starts_;
  std::vector<std::int64_t> durations_;
  // Who waits for the event an instruction records: [index] first entry of a linked list.
  struct Waiter {
    Index index = 0;
    std::uint32_t next = kNone;
  };
  std::vector<std::uint32_t> first_waiter_;
  std::vector<Waiter> waiters_;
  std::vector<std::uint32_t> meeting_of_;  // empty: no collectives
  std::vector<Meeting> meetings_;
  std::vector<Index> meeting_members_;
};

}  // namespace counterflow::sim
