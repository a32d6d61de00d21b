#pragma once

#include <cstdint>
#include <optional>
#include <queue>
#include <span>
#include <unordered_map>
#include <vector>

#include "scheduler/ir/timeline.h"
#include "simulator/disturbances.h"
#include "simulator/flow_network.h"
#include "simulator/wiring.h"

namespace counterflow::sim {

// What one run costs: the wiring's own figures, or a draw of them.
struct Loads {
  std::span<const std::int64_t> durations;  // [index]
  std::span<const double> stretch;          // [message of a send] of its time; empty: 1
};

// The discrete-event engine. Every instruction counts what it still waits for; when the count is
// zero it starts, at the latest of the times at which these were satisfied.
//
// Only links of limited bandwidth make a choice at run time (who goes first, who shares with whom),
// so only then must starts be taken in order of time; without them any order of the work list gives
// the same times.
class Engine {
 public:
  // The wiring and the disturbances must outlive it. One engine a thread.
  explicit Engine(const Wiring& wiring, const Disturbances* disturbances = nullptr);

  // Runs from the start until nothing can go on; may be called again. O(instructions), O(n log n)
  // with bandwidth; over shared links also what FlowNetwork takes for each message.
  void run(const Loads& loads);
  void run() { run({wiring_.durations(), {}}); }

  // Of the last run. What never began is [-1, -1), what began and never ended has the end -1.
  [[nodiscard]] const std::vector<Interval>& times() const { return times_; }
  [[nodiscard]] bool completed() const { return finished_ == times_.size(); }
  [[nodiscard]] std::vector<RankTimeline> timelines() const;

 private:
  struct State {
    std::int64_t ready = 0;     // latest prerequisite satisfied; of a group: latest end so far
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
  struct Message {
    std::uint32_t rank = 0;  // of its send
    std::uint32_t send = 0;
    Matching::End receive;
    FlowNetwork::FlowId flow = 0;
    bool flows = false;
  };
  struct Arrivals {  // at a collective
    std::uint32_t count = 0;
    std::int64_t latest = 0;
  };

  void reset(const Loads& loads);
  void run_over_network();
  void start_next();
  void satisfy(Index index, std::int64_t at);
  void satisfy_next(const std::vector<Index>& next, Index index, std::int64_t at);
  void start(Index index);
  void start_transfers(Index index, std::int64_t at);
  void join_collective(Index index, std::int64_t at);
  void meet(std::uint32_t rank, std::uint32_t transfer, std::int64_t at);
  // A message leaves its send: over a link of its own, or into the network.
  void move(const Message& message, std::int64_t at);
  [[nodiscard]] std::int64_t sent_alone(const Message& message, std::int64_t at);
  bool enter_network(Message message, std::int64_t at);
  // Its last byte has left at `sent`: it arrives after its latency, unless an end has failed.
  void arrive(const Message& message, std::int64_t sent);
  void lose(const Message& message, std::int64_t at);
  void apply(const Disturbances::Change& change);
  void end_transfer(std::size_t rank, std::uint32_t transfer, std::int64_t at);
  void finish(Index index, std::int64_t at);

  [[nodiscard]] std::int64_t fails_at(std::size_t rank) const {
    return disturbances_ == nullptr ? kNever : disturbances_->fails_at(rank);
  }
  // How long something lasts for this message rather than for an average one.
  [[nodiscard]] std::int64_t stretched(const Message& message, std::int64_t time) const;
  // When what takes `work` ns on the way of this message ends.
  [[nodiscard]] std::int64_t pass(const Message& message, std::int64_t at, std::int64_t work) const;

  const Wiring& wiring_;
  const Disturbances* disturbances_;
  Loads loads_;
  std::vector<Interval> times_;           // [index]
  std::vector<State> states_;             // [index]
  std::vector<TransferState> transfers_;  // [message number]
  std::vector<std::uint32_t> ends_left_;  // [index] transfers not ended yet
  std::vector<Arrivals> arrivals_;        // [meeting]
  std::size_t finished_ = 0;
  bool in_time_order_;
  std::vector<Start> work_;  // a stack
  std::priority_queue<Start, std::vector<Start>, std::greater<>> by_time_;
  std::unordered_map<std::uint64_t, std::int64_t> link_free_;  // [source, destination]
  // Over shared links.
  std::optional<FlowNetwork> network_;
  std::unordered_map<std::uint64_t, std::vector<FlowNetwork::LinkId>> routes_;
  std::vector<Message> flowing_;  // [tag]
  std::vector<std::uint32_t> unused_tags_;
  std::size_t next_change_ = 0;
};

}  // namespace counterflow::sim
