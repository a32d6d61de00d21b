#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/graph/channels.h"
#include "scheduler/ir/schedule.h"
#include "scheduler/problem/problem.h"

namespace counterflow {

// What an order costs: every slot as early as its inputs and its rank allow.
struct Evaluation {
  bool complete = false;  // false: the order deadlocks or misses an op that something waits for
  Time makespan{-1};      // last end minus first start, over all ranks; -1ns if not complete
  std::vector<std::vector<Time>> begins;  // of each slot [rank][position]; -1ns: never ran
};

// The fast evaluator of (schedule, costs, links): exactly what the simulator finds under the
// `ideal` execution model, without building a Program. It keeps its scratch memory, so one object
// serves many schedules of one problem, which must outlive it. One object a thread. On links that a
// topology shares it takes each message for the only one, so there it is a lower estimate.
//
// The ops of a schedule must be of stages, replicas and microbatches of the problem; their order
// may be anything.
class Evaluator {
 public:
  // `least_duration`: every op lasts at least this long. With 1ns a consumer begins strictly after
  // its producer, so begins give a total order that respects all dependencies.
  explicit Evaluator(const Problem& problem, Time least_duration = Time{0});

  // The makespan, or -1ns if the order does not complete. O(ops).
  [[nodiscard]] Time makespan(const Schedule& schedule);
  // The same with the begin of every slot.
  [[nodiscard]] Evaluation evaluate(const Schedule& schedule);

 private:
  // What the inner loop needs of a channel.
  struct Wire {
    std::int64_t latency = 0;
    std::int64_t occupancy = 0;  // of its link, for each message
    std::size_t link = 0;        // (source rank, destination rank)
    Rank consumer = 0;           // destination rank
    bool crosses = false;        // ranks at all
  };
  // One op kind of a stage copy: the channels it waits for and feeds, as ranges of channel_ids_,
  // and its duration at factor 1.
  struct ChunkOp {
    std::uint32_t in = 0;
    std::uint32_t out = 0;
    std::uint32_t out_end = 0;  // inputs are [in, out), outputs [out, out_end)
    std::uint8_t needs = 0;     // of the stage's state on its own rank
    std::uint8_t makes = 0;
    std::int64_t duration = 0;
  };
  static constexpr std::size_t kKinds = 7;  // F, B, I, W, RECOMPUTE, OFFLOAD, RELOAD
  struct RankState {
    std::int64_t clock = 0;
    std::uint32_t position = 0;
    std::uint64_t blocked_on = 0;  // 1 + index of the arrival it waits for; 0: none
  };
  enum : std::uint8_t { kForwardDone = 1, kGradientDone = 2, kStored = 4, kRestored = 8 };

  void reset(const Schedule& schedule);
  template <bool kRecord>
  void run(const Schedule& schedule, Evaluation* record);
  template <bool kRecord>
  void advance(const Schedule& schedule, std::uint32_t rank, Evaluation* record);
  // The makespan of what has run, -1ns if some slot has not.
  [[nodiscard]] Time outcome(const Schedule& schedule) const;
  // Latest input of an op, or -1 after noting what the rank is blocked on.
  [[nodiscard]] std::int64_t inputs_ready(const Op& op, RankState& state) const;
  [[nodiscard]] std::int64_t duration(const Slot& slot) const;
  [[nodiscard]] ChunkOp chunk_op_for(const Channels& channels, const Op& op);
  void finish(const Op& op, std::int64_t end);
  void send(std::uint32_t channel, Microbatch microbatch, std::int64_t at);

  [[nodiscard]] std::size_t chunk(const Op& op) const {
    return static_cast<std::size_t>(op.replica) * stages_ + op.stage;
  }
  [[nodiscard]] const ChunkOp& chunk_op(const Op& op) const {
    return chunk_ops_[chunk(op) * kKinds + static_cast<std::size_t>(op.kind) - 1];
  }
  [[nodiscard]] std::uint64_t arrival(std::uint32_t channel, Microbatch microbatch) const {
    return static_cast<std::uint64_t>(channel) * microbatches_ +
           static_cast<std::uint64_t>(microbatch);
  }

  const Problem& problem_;
  std::int64_t least_;
  std::size_t stages_;
  std::size_t microbatches_;
  bool uniform_;
  bool limited_links_;
  std::vector<Wire> wires_;                 // [channel]
  std::vector<std::uint32_t> channel_ids_;  // ranges named by ChunkOp
  std::vector<ChunkOp> chunk_ops_;          // [replica * stages + stage][kind]
  // Scratch.
  std::vector<std::int64_t> arrivals_;  // [channel][microbatch]; -1: not yet
  std::vector<std::uint8_t> done_;      // [chunk][microbatch]
  std::vector<std::int64_t> link_free_;
  std::vector<RankState> states_;
  std::vector<std::uint32_t> runnable_;
  std::int64_t first_begin_ = 0;
  std::int64_t last_end_ = 0;
};

}  // namespace counterflow
