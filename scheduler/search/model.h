#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "scheduler/problem/problem.h"

namespace counterflow {

// A problem as flat integers, built once and read by every search method.
//
// A *lane* is one kind of op of one stage copy: F, G (the backward as far as one op does it: I, or
// B where it may not be split) or W. Its ops are numbered 0..count-1 in the order in which their
// microbatches enter the pipeline. An op is known by `lane * stride + number`. Everything an op
// waits for has the same number in another lane, so edges are between lanes.
//
// Where a stage makes its activations again or moves them out, OFFLOAD is part of its F and
// RECOMPUTE or RELOAD of its G: begun so early that G's own part can begin when its gradient
// arrives, which is as good as standing alone right before it. So the gradient is waited for that
// much shorter, and what F makes leaves that much before its end: lags may be negative.
struct SearchModel {
  using OpId = std::uint32_t;
  using LaneId = std::uint32_t;

  static constexpr int kResources = 2;  // bytes, activations
  static constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max() / 4;
  // In an order: this op and the next one, an F and a G, run as one fused pair. The W of a fused G
  // is part of the pair and does not appear.
  static constexpr OpId kFused = OpId{1} << 31U;

  using Amount = std::array<std::int64_t, kResources>;
  // [rank][position], ops or fused pairs.
  using Orders = std::vector<std::vector<OpId>>;

  struct Lane {
    OpKind kind = OpKind::none;
    std::uint8_t replica = 0;
    std::uint8_t direction = 0;  // which sequence of microbatches flows here
    bool allocates = false;      // holds memory beyond its own end
    Stage stage = 0;
    Rank rank = 0;
    std::uint32_t count = 0;
    std::uint32_t inputs = 0;   // ops it waits for
    std::int64_t duration = 0;  // of an op of factor 1, likewise below
    Amount allocated{};         // at its begin
    Amount freed{};             // at its end
    std::int64_t head = 0;      // longest way before it begins, in an empty pipeline
    std::int64_t tail = 0;      // longest way after it ends
  };
  struct Edge {
    LaneId lane = 0;
    std::int64_t lag = 0;  // latency, and the time on the link where bandwidth is limited; less
                           // what is part of the op but not of its F or G
    std::int64_t occupancy = 0;
  };

  // `sequence`: for each direction its microbatches in the order of their numbers; empty:
  // ascending.
  explicit SearchModel(const Problem& problem, std::vector<std::vector<Microbatch>> sequence = {});

  // The same problem run backwards: a lane keeps its id, the ops of a lane are numbered from the
  // other end, what was freed is allocated. The reverse of an order of one is an order of the
  // other, with the same makespan (without limited bandwidth) and the same memory.
  [[nodiscard]] SearchModel reversed() const;

  // Makes the makespan of this model the longest span of a rank (its last end minus its first
  // begin), up to a constant: what a rank may begin later it may end later.
  void aim_at_span();

  [[nodiscard]] std::size_t ranks() const { return rank_begin.size() - 1; }
  [[nodiscard]] std::size_t ops() const { return lanes.size() * stride; }  // ids, some unused
  [[nodiscard]] OpId id(LaneId lane, std::uint32_t number) const { return lane * stride + number; }
  [[nodiscard]] LaneId lane_of(OpId op) const { return op / stride; }
  [[nodiscard]] std::uint32_t number_of(OpId op) const { return op % stride; }
  [[nodiscard]] std::int64_t duration(LaneId lane, OpId op) const {
    return durations.empty() ? lanes[lane].duration : durations[op];
  }
  [[nodiscard]] std::int64_t allocated(LaneId lane, OpId op, int resource) const {
    const auto r = static_cast<std::size_t>(resource);
    return resource != 0 || allocations.empty() ? lanes[lane].allocated[r] : allocations[op];
  }
  [[nodiscard]] std::int64_t freed(LaneId lane, OpId op, int resource) const {
    const auto r = static_cast<std::size_t>(resource);
    return resource != 0 || releases.empty() ? lanes[lane].freed[r] : releases[op];
  }
  [[nodiscard]] std::span<const Edge> inputs(LaneId lane) const {
    return {in_edges.data() + in_begin[lane], in_begin[lane + 1] - in_begin[lane]};
  }
  [[nodiscard]] std::span<const Edge> outputs(LaneId lane) const {
    return {out_edges.data() + out_begin[lane], out_begin[lane + 1] - out_begin[lane]};
  }
  // The duration of a fused pair where it beats its parts one after the other, else -1.
  [[nodiscard]] std::int64_t pair_duration(LaneId forward, OpId f, LaneId gradient, OpId g) const;
  // The W lane of a G lane, or of nothing: kNoLane.
  static constexpr LaneId kNoLane = std::numeric_limits<LaneId>::max();
  [[nodiscard]] LaneId weight_of(LaneId gradient) const { return weight_lane[gradient]; }

  // The lanes of a stage copy are neighbours: F, G, W as far as there are. The last of them.
  [[nodiscard]] LaneId last_of_copy(LaneId lane) const;

  [[nodiscard]] Op op(OpId id) const;
  [[nodiscard]] Schedule schedule(const Orders& orders) const;
  // B where the model has I and W becomes both; fused pairs that save nothing become F, then the
  // backward; OFFLOAD, RECOMPUTE and RELOAD go to their F and backward.
  [[nodiscard]] Orders orders(const Schedule& schedule) const;

  const Problem* problem = nullptr;
  bool is_reversed = false;
  bool has_pairs = false;      // some pair on some rank beats its parts
  bool limited_links = false;  // messages queue on their links
  bool has_limits = false;     // some rank has a memory limit
  bool restores = false;       // some F frees what its G allocates again
  bool chain = false;          // the stage graph is a chain
  std::uint32_t stride = 0;
  std::vector<std::vector<Microbatch>> sequences;  // [direction][number]
  std::vector<Lane> lanes;                         // those of a rank are neighbours, stages ascend
  std::vector<LaneId> rank_begin;                  // [rank] first lane; one more at the end
  std::vector<std::uint32_t> in_begin, out_begin;
  std::vector<Edge> in_edges, out_edges;
  std::vector<std::int64_t> rank_head;  // [rank] nothing begins there before
  std::vector<std::int64_t> rank_tail;  // [rank] counted after its last end
  std::vector<Amount> limits;           // [rank]; kUnlimited where there is none
  // Per op, only where microbatches differ.
  std::vector<std::int64_t> durations, allocations, releases;
  std::vector<LaneId> weight_lane;  // [lane]
  std::uint32_t pair_width = 0;
  std::vector<std::int64_t> pair_table;  // [forward lane][gradient lane - first of the rank]
};

}  // namespace counterflow
