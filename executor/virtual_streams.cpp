#include "executor/virtual_streams.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "executor/course.h"
#include "executor/exchange.h"
#include "executor/meetings.h"
#include "executor/node.h"
#include "executor/prefetch.h"
#include "executor/progress.h"
#include "executor/script.h"
#include "scheduler/graph/matching.h"
#include "scheduler/graph/prerequisites.h"
#include "scheduler/search/random.h"

namespace counterflow::exec {
namespace {

using Index = Prerequisites::Index;

// How far ahead a rank's next ones are fetched.
constexpr std::size_t kNodesAhead = 16;
constexpr std::size_t kAccessesAhead = 24;
// And how far where the order is known: nodes and accesses stand in it, the rest is spread.
constexpr std::size_t kNextInScript = 12;

// What the runs of a rank use.
struct RankState {
  RankMemory* memory = nullptr;
  const Access* accesses = nullptr;
};

// One run of one program. What may begin, and so what does where nothing is drawn, depends on the
// program alone: the order of the first step is that of all.
class Machine final {
 public:
  Machine(const Program& program, Compute& compute, const RunSettings& settings, bool clock)
      : program_(program),
        compute_(compute),
        settings_(settings),
        clock_(clock),
        matching_(program),
        prerequisites_(program, settings.execution),
        memories_(program.ranks.begin(), program.ranks.end()),
        exchange_(program, matching_, settings.execution.semantics, memories_, Posting::one_thread),
        meetings_(program, memories_),
        nodes_(nodes_of(program, prerequisites_, exchange_)),
        followers_(followers_of(prerequisites_)),
        pending_(nodes_.size() + 1),
        ends_left_(nodes_.size()),
        ready_(std::make_unique_for_overwrite<Index[]>(nodes_.size() + 1)),
        intervals_(prerequisites_.size()),
        at_random_(settings.seed != 0),
        random_(settings.seed) {
    for (std::size_t r = 0; r < program.ranks.size(); ++r) {
      ranks_.push_back({&memories_[r], program.ranks[r].accesses.data()});
    }
    for (Index index = 0; index < prerequisites_.size(); ++index) {
      if (prerequisites_.counts()[index] == 0) first_.push_back(index);
    }
  }

  RunResult run() {
    RunResult result;
    for (step_ = 0; step_ < settings_.steps && !failure_; ++step_) {
      begin_step();
      run_step();
      if (failure_) break;
      for (std::size_t r = 0; r < program_.ranks.size(); ++r) {
        compute_.end_step(static_cast<Rank>(r), step_);
      }
      settle(settings_, timeline(), result);
      if (settings_.step_done) settings_.step_done(step_ + 1);
    }
    if (failure_) {
      for (std::uint32_t r = 0; r < program_.ranks.size(); ++r) {
        result.stopped.emplace_back(progress(r));
      }
    }
    result.failure = std::move(failure_);
    return result;
  }

 private:
  // Whom the exchange tells.
  template <typename Course>
  struct Listener {
    Machine& machine;
    Course& course;
    void transfer_ended(const Exchange::End& at) {
      if (!at.is_alone && --machine.ends_left_[at.instruction] > 0) return;
      if (Course::kFollows || machine.nodes_[at.instruction].shape == Node::Shape::message) {
        machine.end(at.instruction, course);
      } else {
        course = machine.end_other(at.instruction, course);
      }
    }
    void transfer_failed(const Exchange::End& at, std::string reason) {
      machine.fail(at.instruction, std::move(reason));
    }
  };

  void run_step() {
    if (!script_.order.empty()) {
      return clock_ ? follow<Following<false>>() : follow<Following<true>>();
    }
    if (at_random_ || settings_.steps == 1) return seek([](Index) {});
    std::vector<Index> order;
    order.reserve(prerequisites_.size());
    seek([&order](Index index) { order.push_back(index); });
    if (!failure_) script_ = script_of(program_, nodes_, std::move(order));
  }

  template <typename Course>
  [[nodiscard]] std::span<const Access> accesses_of(const Node& node) const {
    const Access* all = Course::kFollows ? script_.accesses.data() : ranks_[node.rank].accesses;
    return {all + node.body.first, node.body.count};
  }

  // Tells of each instruction as it begins.
  template <typename Began>
  void seek(Began began) {
    std::ranges::copy(prerequisites_.counts(), pending_.begin());
    pending_.back() = kNone;  // nobody never gets ready
    Seeking course{.ready = std::ranges::copy(first_, ready_.get()).out,
                   .pending = pending_.data()};
    while (course.ready != ready_.get() && !failure_) {
      const Index index = draw(course);
      began(index);
      prefetch(&nodes_[index], kNodesAhead);
      prefetch(&followers_[index], kNodesAhead);
      prefetch(&intervals_[index], kNodesAhead);
      begin(index, nodes_[index], course);
    }
    events_ = course.events;
    if (static_cast<std::size_t>(events_) == 2 * prerequisites_.size()) return;
    for (const Index* index = ready_.get(); index != course.ready; ++index) ++pending_[*index];
    for (Index index = 0; index < prerequisites_.size(); ++index) {
      if (pending_[index] > 0) forget(index);
    }
    if (!failure_) failure_ = stuck();
  }

  template <typename Course>
  void follow() {
    Course course;
    const std::size_t size = script_.order.size();
    std::size_t at = 0;
    for (; at < size && !failure_; ++at) {
      if (at + kNextInScript < size) {
        const Node& soon = script_.nodes[at + kNextInScript];
        if (soon.shape == Node::Shape::message) exchange_.fetch(soon.body.first);
        if (!Course::kTimesKnown) prefetch(&intervals_[script_.order[at + kNextInScript]], 0);
      }
      begin(script_.order[at], script_.nodes[at], course);
    }
    events_ = course.events;
    if (!failure_) return;
    for (; at < size; ++at) forget(script_.order[at]);
    if (Course::kTimesKnown) forget_from(Time{events_});
  }

  // What has not begun, or not ended, has the times of the step before.
  void forget(Index index) { intervals_[index] = {kNotYet, kNotYet}; }
  void forget_from(Time event) {
    for (Interval& each : intervals_) {
      if (each.end >= event) each.end = kNotYet;
    }
  }

  void begin_step() {
    meetings_.clear();
    start_ = std::chrono::steady_clock::now();
    for (std::size_t r = 0; r < program_.ranks.size(); ++r) {
      memories_[r].clear();
      compute_.begin_step(static_cast<Rank>(r), step_);
    }
  }

  // Without a seed what became ready last goes first: what it needs has just been used.
  Index draw(Seeking& course) {
    Index& last = *--course.ready;
    if (!at_random_) return last;
    const auto others = static_cast<std::uint32_t>(&last - ready_.get());
    return std::exchange(ready_[random_.below(others + 1)], last);
  }

  template <typename Course>
  Time now(Course& course) const {
    const Time event{course.events++};
    if (!clock_) return event;
    return std::chrono::duration_cast<Time>(std::chrono::steady_clock::now() - start_);
  }

  template <typename Course>
  void note_begin(Index index, Course& course) {
    if constexpr (Course::kTimesKnown) {
      ++course.events;
    } else {
      intervals_[index] = {now(course), kNotYet};
    }
  }
  template <typename Course>
  void note_end(Index index, Course& course) {
    if constexpr (Course::kTimesKnown) {
      ++course.events;
    } else {
      intervals_[index].end = now(course);
    }
  }

  template <typename Course>
  [[gnu::always_inline]] void begin(Index index, const Node& node, Course& course) {
    if (node.shape == Node::Shape::run) {
      note_begin(index, course);
      if (call(index, node, accesses_of<Course>(node))) end(index, course);
    } else if (node.shape == Node::Shape::message) {
      note_begin(index, course);
      course.satisfy(followers_[index].after_begin);
      Listener<Course> listener{*this, course};
      exchange_.post(node.body.first, listener);
    } else {
      course = begin_other(index, course);
    }
  }

  // Of a run or a message.
  template <typename Course>
  [[gnu::always_inline]] void end(Index index, Course& course) {
    note_end(index, course);
    for (const Index waiting : followers_[index].after_end) course.satisfy(waiting);
  }

  // The same for whatever it is.
  template <typename Course>
  [[nodiscard, gnu::noinline]] Course begin_other(Index index, Course course) {
    const std::uint32_t rank = prerequisites_.rank(index);
    const Instruction& what = program_.ranks[rank].instructions[prerequisites_.instruction(index)];
    note_begin(index, course);
    for (const Index waiting : prerequisites_.after_begin(index)) course.satisfy(waiting);
    switch (what.kind) {
      case InstructionKind::run:
        return call(index, nodes_[index], accesses_of<Seeking>(nodes_[index]))
                   ? end_other(index, course)
                   : course;
      case InstructionKind::transfer:
        return post(index, what.body, course);
      case InstructionKind::collective:
        return meet(index, course);
      case InstructionKind::step_end:
        break;
    }
    return end_other(index, course);
  }

  template <typename Course>
  [[nodiscard, gnu::noinline]] Course end_other(Index index, Course course) {
    note_end(index, course);
    for (const Index waiting : prerequisites_.after_end(index)) course.satisfy(waiting);
    return course;
  }

  // False if it failed.
  [[gnu::always_inline]] bool call(Index index, const Node& node,
                                   std::span<const Access> accesses) {
    RankMemory& memory = *ranks_[node.rank].memory;
    prefetch(accesses.data(), kAccessesAhead);
    for (const Access& access : accesses) {
      if (!memory.use(access)) return fail(index, memory.complaint(access));
    }
    try {
      compute_.run({.rank = node.rank,
                    .step = step_,
                    .stream = node.stream,
                    .kernel = &program_.kernels[node.kernel],
                    .op = node.op,
                    .paired = node.paired,
                    .accesses = accesses,
                    .memory = &memory});
    } catch (const std::exception& error) {
      return fail(index, error.what());
    }
    return true;
  }

  // A group of messages.
  template <typename Course>
  [[nodiscard]] Course post(Index index, Range group, Course course) {
    if (group.count == 0) return end_other(index, course);
    ends_left_[index] = group.count;
    const Exchange::Id first = exchange_.id(nodes_[index].rank, group.first);
    Listener<Course> listener{*this, course};
    for (Exchange::Id k = 0; k < group.count && !failure_; ++k) exchange_.post(first + k, listener);
    return course;
  }

  template <typename Course>
  [[nodiscard]] Course meet(Index index, Course course) {
    Meetings::Outcome outcome =
        meetings_.arrive(prerequisites_.rank(index), prerequisites_.instruction(index));
    if (!outcome.fault.empty()) {
      fail(prerequisites_.index(outcome.at.rank, outcome.at.instruction), std::move(outcome.fault));
    }
    for (const Meetings::Member& each : outcome.ended) {
      course = end_other(prerequisites_.index(each.rank, each.instruction), course);
    }
    return course;
  }

  // Always false.
  bool fail(Index index, std::string reason) {
    if (failure_) return false;
    const auto rank = static_cast<Rank>(prerequisites_.rank(index));
    failure_ = Failure{rank, prerequisites_.instruction(index), step_, std::move(reason), rank};
    return false;
  }

  [[nodiscard]] Failure stuck() const {
    const Progress progress{
        .begun = [this](Index index) { return intervals_[index].begin != kNotYet; },
        .ended = [this](Index index) { return intervals_[index].end != kNotYet; },
    };
    return why_stuck(program_, matching_, prerequisites_, progress, step_);
  }

  [[nodiscard]] std::vector<Interval> intervals_of(std::uint32_t rank) const {
    const auto first = intervals_.begin() + prerequisites_.index(rank, 0);
    return {first, first + std::ssize(program_.ranks[rank].instructions)};
  }
  [[nodiscard]] Timeline timeline() const {
    Timeline timeline;
    timeline.ranks.reserve(program_.ranks.size());
    for (std::uint32_t r = 0; r < program_.ranks.size(); ++r) {
      timeline.ranks.push_back({intervals_of(r), {}});
    }
    return timeline;
  }
  RankProgress progress(std::uint32_t rank) {
    using namespace std::chrono;
    Following<false> course{.events = events_++};
    RankProgress at{
        .step = failure_->step, .start_ns = 0, .stopped = now(course), .instructions = {}};
    const auto wall = duration_cast<Time>(system_clock::now().time_since_epoch());
    at.start_ns = (wall - at.stopped).count();
    at.instructions = intervals_of(rank);
    return at;
  }

  const Program& program_;
  Compute& compute_;
  const RunSettings& settings_;
  const bool clock_;
  const Matching matching_;
  const Prerequisites prerequisites_;
  std::vector<RankMemory> memories_;  // [rank]
  Exchange exchange_;
  Meetings meetings_;
  // [index]; of `pending_` nobody as well.
  const std::vector<Node> nodes_;
  const std::vector<Followers> followers_;
  std::vector<std::uint32_t> pending_;    // how many must yet begin or end before it
  std::vector<std::uint32_t> ends_left_;  // of a group that has begun: messages that have not ended
  std::vector<RankState> ranks_;          // [rank]
  std::vector<Index> first_;              // those that wait for nobody
  Script script_;                         // of all steps, where one goes like the other
  std::unique_ptr<Index[]> ready_;        // those that may begin; room for all, and one more
  std::vector<Interval> intervals_;       // [index] of those that have begun; end kNotYet: no more
  const bool at_random_;
  SearchRandom random_;
  std::optional<Failure> failure_;
  std::chrono::steady_clock::time_point start_;
  std::int64_t events_ = 0;  // of the last step
  int step_ = 0;
};

}  // namespace

RunResult VirtualStreams::run(const Program& program, Compute& compute,
                              const RunSettings& settings) {
  return Machine(program, compute, settings, clock_).run();
}

}  // namespace counterflow::exec
