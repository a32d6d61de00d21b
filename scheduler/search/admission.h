#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "scheduler/search/model.h"

namespace counterflow {

// Which ops may take memory now, so that no later state is a dead end (the banker's question).
//
// Let microbatches finish one after the other in the order in which they entered the pipeline. A
// rank is safe if at each step what the younger ones hold beside it leaves room for all that the
// microbatch has not yet allocated there. Nothing of a microbatch is freed on a rank before all of
// it is allocated, so the younger ones hold what their lanes have begun; and the room left only
// grows with the step, where microbatches are equal, so that the first step at which something is
// still to be allocated decides. The oldest microbatch is always admitted, on every rank, so
// something can always go on.
//
// Where activations are made again, memory is freed before all of it is allocated. There each
// microbatch under way is asked for in turn whether what it still has to do fits beside what the
// younger ones hold, its ops on the rank taken one after the other: F by stage, then the gradients
// backwards, each W behind its own.
class Admission {
 public:
  explicit Admission(const SearchModel& model);

  // Forgets all that was taken.
  void reset();

  // Is there anything to ask of this lane?
  [[nodiscard]] bool is_limited(SearchModel::LaneId lane) const {
    return model_.has_limits && takes_[lane] != 0;
  }
  // May the next op of a limited lane begin? O(lanes of the rank).
  [[nodiscard]] bool admits(SearchModel::LaneId lane) const;
  // It begins; what it frees is usable by whatever its rank begins next.
  void begin(SearchModel::LaneId lane, SearchModel::OpId op);

 private:
  using LaneId = SearchModel::LaneId;

  [[nodiscard]] bool is_safe(LaneId taking, std::size_t rank, std::size_t resource) const;
  [[nodiscard]] std::int64_t peak_at(LaneId taking, std::size_t rank, std::size_t resource,
                                     std::uint8_t direction, std::uint32_t number) const;
  [[nodiscard]] bool all_finish(LaneId taking, std::size_t rank, std::size_t resource) const;
  // What a microbatch holds, and the most it will hold until it has finished, beside that.
  struct Claim {
    bool is_done = true;
    std::int64_t held = 0;
    std::int64_t more = 0;
  };
  [[nodiscard]] Claim claim_of(LaneId taking, std::size_t rank, std::size_t resource,
                               std::uint8_t direction, std::uint32_t number) const;
  // What ops [from, to) of a lane allocate.
  [[nodiscard]] std::int64_t total(LaneId lane, std::size_t resource, std::uint32_t from,
                                   std::uint32_t to) const;
  [[nodiscard]] std::uint32_t begun(LaneId lane, LaneId taking) const {
    return next_[lane] + (lane == taking ? 1U : 0U);
  }

  const SearchModel& model_;
  std::vector<std::uint8_t> takes_;                  // [lane] allocates anything
  std::vector<std::uint8_t> shared_;                 // [rank] several lanes hold memory there
  std::vector<std::vector<LaneId>> holders_;         // [rank] lanes that allocate anything
  std::vector<std::vector<std::int64_t>> prefixes_;  // [lane][number] bytes, where ops differ
  // Where activations are made again: [rank] all its lanes, as one microbatch would run them alone.
  std::vector<std::vector<LaneId>> alone_;
  std::vector<std::uint32_t> next_;        // [lane]
  std::vector<SearchModel::Amount> used_;  // [rank]
  // Two directions: how many microbatches of each have entered, and for each of them how many of
  // the other direction had entered before.
  std::array<std::uint32_t, 2> entered_{};
  std::array<std::vector<std::uint32_t>, 2> older_others_;  // [direction][number]
};

}  // namespace counterflow
