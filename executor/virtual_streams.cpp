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

#include "executor/exchange.h"
#include "executor/meetings.h"
#include "executor/node.h"
#include "executor/prefetch.h"
#include "executor/progress.h"
#include "scheduler/graph/matching.h"
#include "scheduler/graph/prerequisites.h"

namespace counterflow::exec {
namespace {

using Index = Prerequisites::Index;

// SplitMix64: small, and the same everywhere.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  // Uniform enough in 0..bound-1 for choosing an interleaving.
  std::uint32_t below(std::uint32_t bound) {
    state_ += 0x9e3779b97f4a7c15ULL;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
    return static_cast<std::uint32_t>(((z ^ (z >> 31U)) >> 32U) * bound >> 32U);
  }

 private:
  std::uint64_t state_;
};

// How far ahead a rank's next ones are fetched.
constexpr std::size_t kNodesAhead = 16;
constexpr std::size_t kAccessesAhead = 24;

// What the runs of a rank use.
struct RankState {
  RankMemory* memory = nullptr;
  const Access* accesses = nullptr;
};

// One run of one program. An instruction counts down those that wait for its begin and its end, and
// whoever reaches zero is ready; nobody is ever asked twice.
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
        pending_(nodes_.size()),
        ready_(std::make_unique_for_overwrite<Index[]>(nodes_.size())),
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
  // How far a step is: what every instruction changes. A local variable of the loop; whoever is
  // not inlined there takes and returns it, so that it has no address and stays in registers.
  struct Course {
    Index* ready = nullptr;   // behind the last of those that may begin
    std::int64_t events = 0;  // begins and ends so far
  };
  // Whom the exchange tells.
  struct Listener {
    Machine& machine;
    Course& course;
    void transfer_ended(const Exchange::End& at) {
      Node& node = machine.nodes_[at.instruction];
      if (node.shape == Node::Shape::message) {
        machine.end(at.instruction, node, course);
      } else if (--node.ends_left == 0) {
        course = machine.end_other(at.instruction, course);
      }
    }
    void transfer_failed(const Exchange::End& at, std::string reason) {
      machine.fail(at.instruction, std::move(reason));
    }
  };

  void run_step() {
    Course course{.ready = std::ranges::copy(first_, ready_.get()).out};
    while (course.ready != ready_.get() && !failure_) begin(draw(course), course);
    events_ = course.events;
    if (static_cast<std::size_t>(events_) == 2 * prerequisites_.size()) return;
    forget_what_has_not_begun(course);
    if (!failure_) failure_ = stuck();
  }

  // Of what has not begun the intervals are those of the step before.
  void forget_what_has_not_begun(const Course& course) {
    for (const Index* index = ready_.get(); index != course.ready; ++index) ++pending_[*index];
    for (Index index = 0; index < prerequisites_.size(); ++index) {
      if (pending_[index] > 0) intervals_[index] = {kNotYet, kNotYet};
    }
  }

  void begin_step() {
    meetings_.clear();
    start_ = std::chrono::steady_clock::now();
    for (std::size_t r = 0; r < program_.ranks.size(); ++r) {
      memories_[r].clear();
      compute_.begin_step(static_cast<Rank>(r), step_);
    }
    std::copy(prerequisites_.counts().begin(), prerequisites_.counts().end(), pending_.begin());
    pending_.back() = kNone;  // nobody never gets ready
  }

  // Without a seed what became ready last goes first: what it needs has just been used.
  Index draw(Course& course) {
    Index& last = *--course.ready;
    if (!at_random_) return last;
    const auto others = static_cast<std::uint32_t>(&last - ready_.get());
    return std::exchange(ready_[random_.below(others + 1)], last);
  }

  Time now(Course& course) const {
    const Time event{course.events++};
    if (!clock_) return event;
    return std::chrono::duration_cast<Time>(std::chrono::steady_clock::now() - start_);
  }

  // Whether one gets ready is hard to foretell, so nothing branches on it.
  void satisfy(Index waiting, Course& course) {
    *course.ready = waiting;
    course.ready += static_cast<int>(--pending_[waiting] == 0);
  }

  [[gnu::always_inline]] void begin(Index index, Course& course) {
    Node& node = nodes_[index];
    prefetch(&node, kNodesAhead);
    prefetch(&intervals_[index], kNodesAhead);
    if (node.shape == Node::Shape::run) {
      intervals_[index] = {now(course), kNotYet};
      if (call(index, node)) end(index, node, course);
    } else if (node.shape == Node::Shape::message) {
      intervals_[index] = {now(course), kNotYet};
      satisfy(node.after_begin, course);
      Listener listener{*this, course};
      exchange_.post(node.body.first, listener);
    } else {
      course = begin_other(index, course);
    }
  }

  // Of a run or a message.
  [[gnu::always_inline]] void end(Index index, const Node& node, Course& course) {
    intervals_[index].end = now(course);
    for (const Index waiting : node.after_end) satisfy(waiting, course);
  }

  // The same for whatever it is.
  [[nodiscard, gnu::noinline]] Course begin_other(Index index, Course course) {
    const std::uint32_t rank = prerequisites_.rank(index);
    const Instruction& what = program_.ranks[rank].instructions[prerequisites_.instruction(index)];
    intervals_[index] = {now(course), kNotYet};
    for (const Index waiting : prerequisites_.after_begin(index)) satisfy(waiting, course);
    switch (what.kind) {
      case InstructionKind::run:
        return call(index, nodes_[index]) ? end_other(index, course) : course;
      case InstructionKind::transfer:
        return post(index, what.body, course);
      case InstructionKind::collective:
        return meet(index, course);
      case InstructionKind::step_end:
        break;
    }
    return end_other(index, course);
  }

  [[nodiscard, gnu::noinline]] Course end_other(Index index, Course course) {
    intervals_[index].end = now(course);
    for (const Index waiting : prerequisites_.after_end(index)) satisfy(waiting, course);
    return course;
  }

  // False if it failed.
  [[gnu::always_inline]] bool call(Index index, const Node& node) {
    const RankState& rank = ranks_[node.rank];
    RankMemory& memory = *rank.memory;
    const std::span accesses(rank.accesses + node.body.first, node.body.count);
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
  [[nodiscard]] Course post(Index index, Range group, Course course) {
    if (group.count == 0) return end_other(index, course);
    Node& node = nodes_[index];
    node.ends_left = group.count;
    const Exchange::Id first = exchange_.id(node.rank, group.first);
    Listener listener{*this, course};
    for (Exchange::Id k = 0; k < group.count && !failure_; ++k) exchange_.post(first + k, listener);
    return course;
  }

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
    Course course{.events = events_++};
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
  std::vector<Node> nodes_;             // [index], and nobody
  std::vector<std::uint32_t> pending_;  // the same: how many must yet begin or end before it
  std::vector<RankState> ranks_;        // [rank]
  std::vector<Index> first_;            // those that wait for nobody
  std::unique_ptr<Index[]> ready_;      // those that may begin; room for all, and one more
  std::vector<Interval> intervals_;     // [index] of those that have begun; end kNotYet: no more
  const bool at_random_;
  Random random_;
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
