#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/search/admission.h"
#include "scheduler/search/earliest.h"
#include "scheduler/search/model.h"

namespace counterflow {

// How the list scheduler chooses: the smallest key first.
struct ListRule {
  // The key of op n of a lane is base + n * slope ...
  std::vector<std::int64_t> base;   // [lane]
  std::vector<std::int64_t> slope;  // [lane]
  // ... or, where given, one of its own.
  std::span<const std::int64_t> keys;  // [op]
  // Idle up to this share (in 1/8) of the duration of the best op that could begin, for a better
  // one whose arrival is already known; in the meantime only what ends by then.
  int patience = 0;
  // At most so many ops of a lane begun whose memory is not all freed; empty: no cap.
  std::vector<std::uint32_t> caps;  // [lane]
  // Wait for the other half of a fused pair up to this share (in 1/8) of what the pair saves.
  int pair_patience = 8;
};

// An event-driven list scheduler: whenever a rank is free it begins the best op that is there and
// that the memory admits. Never runs into a dead end. Keeps its scratch memory; one object a
// thread.
class ListScheduler {
 public:
  explicit ListScheduler(const SearchModel& model);

  // The makespan, or -1 as soon as it is known to reach `cutoff`, or if nothing can go on (memory
  // below what one microbatch needs). O(ops * (lanes of a rank + ranks / 16)).
  std::int64_t run(const ListRule& rule, std::int64_t cutoff = SearchModel::kUnlimited);

  // Of the last run. When each op began; of a fused pair its parts, W included, when it began.
  [[nodiscard]] const std::vector<std::int64_t>& begins() const { return begins_; }
  [[nodiscard]] const SearchModel::Orders& orders() const { return orders_; }
  // Ops begun since the object was made.
  [[nodiscard]] std::int64_t work() const { return work_; }

 private:
  using LaneId = SearchModel::LaneId;
  using OpId = SearchModel::OpId;

  static constexpr std::int64_t kNever = SearchModel::kUnlimited;

  // The next op of a lane, at a moment.
  struct Candidate {
    LaneId lane = 0;
    std::int64_t arrival = 0;
    std::int64_t key = 0;
    std::int64_t duration = 0;
  };
  // A lane's next op, and what its lane has under way.
  struct Head {
    std::int64_t arrival = kNever;  // kNever: not known, or there is no op left
    std::int64_t key = 0;
    std::int64_t duration = 0;
    std::uint32_t number = 0;
    std::uint32_t count = 0;
    std::uint32_t in_flight = 0;
    std::uint32_t cap = 0;
  };

  void reset(const ListRule& rule);
  void wake(std::uint32_t rank, std::int64_t at) {
    if (at < events_.time(rank)) events_.set(rank, at);
  }
  void look_at_next(LaneId lane);
  void collect(std::uint32_t rank);
  void decide(std::uint32_t rank, std::int64_t now);
  template <typename Fits>
  [[nodiscard]] const Candidate* first_by_key(Fits fits) const;
  // The candidate to begin now, or none after noting when to ask again.
  const Candidate* choose(std::uint32_t rank, std::int64_t now);
  bool fuse(std::uint32_t rank, std::int64_t now);
  void begin(const Candidate& candidate, std::int64_t now);
  void take(LaneId lane, OpId op, std::int64_t begin);
  void send(LaneId lane, OpId op, std::int64_t end);
  void finish(std::uint32_t rank, std::int64_t end);
  [[nodiscard]] std::int64_t key(LaneId lane, std::uint32_t number) const {
    return rule_->keys.empty()
               ? rule_->base[lane] + static_cast<std::int64_t>(number) * rule_->slope[lane]
               : rule_->keys[model_.id(lane, number)];
  }

  const SearchModel& model_;
  const ListRule* rule_ = nullptr;
  Admission admission_;
  std::vector<LaneId> holder_of_;  // [lane] the lane whose cap counts what this lane frees last
  std::vector<Head> heads_;        // [lane]
  std::vector<std::int64_t> arrivals_;   // [op] kNever: not known
  std::vector<std::uint32_t> got_;       // [op] inputs known
  std::vector<std::int64_t> partial_;    // [op] latest of them
  std::vector<std::int64_t> begins_;     // [op]
  std::vector<std::int64_t> link_free_;  // [source][destination]
  std::vector<std::int64_t> clocks_;     // [rank]
  Earliest events_;                      // [rank] when it is to decide next
  std::vector<Candidate> candidates_;
  SearchModel::Orders orders_;
  std::int64_t cutoff_ = 0;
  std::int64_t last_end_ = 0;
  std::size_t left_ = 0;
  bool hopeless_ = false;
  std::int64_t work_ = 0;
};

}  // namespace counterflow
