#include "executor/virtual_streams.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>
#include <vector>

#include "executor/local_transport.h"
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

// One run of one program.
class Machine final : private Transport::Listener {
 public:
  Machine(const Program& program, Compute& compute, const RunSettings& settings, bool clock)
      : program_(program),
        compute_(compute),
        settings_(settings),
        clock_(clock),
        matching_(program),
        prerequisites_(program, settings.execution),
        random_(settings.seed),
        transport_(program, matching_, settings.execution.semantics, memories_,
                   Posting::one_thread) {
    nodes_.reserve(prerequisites_.size());
    for (std::uint32_t r = 0; r < program.ranks.size(); ++r) {
      memories_.emplace_back(program.ranks[r]);
      for (const Instruction& what : program.ranks[r].instructions) {
        nodes_.push_back({what.kind, static_cast<std::uint16_t>(r), what.body});
      }
    }
  }

  RunResult run() {
    RunResult result;
    for (step_ = 0; step_ < settings_.steps && !failure_; ++step_) {
      begin_step();
      while (!ready_.empty() && !failure_) begin(draw());
      if (!failure_ && done_ < prerequisites_.size()) failure_ = stuck();
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
  // What is asked of every instruction, close together.
  struct Node {
    InstructionKind kind = InstructionKind::run;
    std::uint16_t rank = 0;
    Range body{};
  };

  RankProgress progress(std::uint32_t rank) {
    using namespace std::chrono;
    RankProgress at{.step = failure_->step, .start_ns = 0, .stopped = now(), .instructions = {}};
    const auto wall = duration_cast<Time>(system_clock::now().time_since_epoch());
    at.start_ns = (wall - at.stopped).count();
    at.instructions = intervals_of(rank);
    return at;
  }

  std::vector<Interval> intervals_of(std::uint32_t rank) const {
    const auto first = intervals_.begin() + prerequisites_.index(rank, 0);
    return {first, first + std::ssize(program_.ranks[rank].instructions)};
  }
  Timeline timeline() const {
    Timeline timeline;
    for (std::uint32_t r = 0; r < program_.ranks.size(); ++r) {
      timeline.ranks.emplace_back().instructions = intervals_of(r);
    }
    return timeline;
  }

  void begin_step() {
    pending_.assign(prerequisites_.counts().begin(), prerequisites_.counts().end());
    ends_left_.resize(pending_.size());
    intervals_.assign(pending_.size(), {kNotYet, kNotYet});
    transport_.begin_step(step_, *this);
    now_ = 0;
    done_ = 0;
    start_ = std::chrono::steady_clock::now();
    for (std::size_t r = 0; r < program_.ranks.size(); ++r) {
      memories_[r].clear();
      compute_.begin_step(static_cast<Rank>(r), step_);
    }
    for (Index index = 0; index < pending_.size(); ++index) {
      if (pending_[index] == 0) ready_.push_back(index);
    }
  }

  // Without a seed what became ready last goes first: what it needs has just been used.
  Index draw() {
    const auto ready = static_cast<std::uint32_t>(ready_.size());
    const std::uint32_t at = settings_.seed == 0 ? ready - 1 : random_.below(ready);
    const Index index = ready_[at];
    ready_[at] = ready_.back();
    ready_.pop_back();
    return index;
  }

  Time now() {
    if (clock_) {
      return std::chrono::duration_cast<Time>(std::chrono::steady_clock::now() - start_);
    }
    return Time{now_++};
  }

  void satisfy(std::span<const Index> waiting) {
    for (const Index index : waiting) {
      if (--pending_[index] == 0) ready_.push_back(index);
    }
  }

  void begin(Index index) {
    intervals_[index].begin = now();
    satisfy(prerequisites_.after_begin(index));
    const Node& what = nodes_[index];
    if (what.kind == InstructionKind::run) {
      call(index, what.rank);
      if (!failure_) end(index);
    } else if (what.kind == InstructionKind::transfer) {
      post(index, what);
    } else if (what.kind == InstructionKind::step_end) {
      end(index);
    } else {
      transport_.arrive(what.rank, prerequisites_.instruction(index));
    }
  }

  void end(Index index) {
    intervals_[index].end = now();
    ++done_;
    satisfy(prerequisites_.after_end(index));
  }

  void call(Index index, std::uint32_t rank) {
    const RankProgram& list = program_.ranks[rank];
    const Instruction& what = list.instructions[prerequisites_.instruction(index)];
    RankMemory& memory = memories_[rank];
    const auto accesses = list.accesses_of(what);
    for (const Access& access : accesses) {
      if (!memory.finds(access)) return fail(index, memory.complaint(access));
      memory.wrote(access);
    }
    try {
      compute_.run({.rank = static_cast<Rank>(rank),
                    .step = step_,
                    .stream = what.stream,
                    .kernel = &program_.kernels[what.kernel],
                    .op = what.op,
                    .paired = what.paired,
                    .accesses = accesses,
                    .memory = &memory});
    } catch (const std::exception& error) {
      fail(index, error.what());
    }
  }

  void post(Index index, const Node& what) {
    ends_left_[index] = what.body.count;
    for (std::uint32_t k = 0; k < what.body.count && !failure_; ++k) {
      transport_.post({what.rank, what.body.first + k});
    }
    if (what.body.count == 0) end(index);
  }

  [[nodiscard]] Index owner(Matching::End end) const {
    return prerequisites_.index(end.rank, matching_.instruction(end.rank, end.transfer));
  }

  void transfer_ended(Matching::End at) override {
    const Index index = owner(at);
    if (--ends_left_[index] == 0) end(index);
  }
  void transfer_failed(Matching::End at, std::string reason, std::uint32_t /*culprit*/) override {
    fail(owner(at), std::move(reason));
  }
  void collective_ended(std::uint32_t rank, std::uint32_t instruction) override {
    end(prerequisites_.index(rank, instruction));
  }
  void collective_failed(std::uint32_t rank, std::uint32_t instruction, std::string reason,
                         std::uint32_t /*culprit*/) override {
    fail(prerequisites_.index(rank, instruction), std::move(reason));
  }

  void fail(Index index, std::string reason) {
    if (failure_) return;
    const auto rank = static_cast<Rank>(prerequisites_.rank(index));
    failure_ = Failure{rank, prerequisites_.instruction(index), step_, std::move(reason), rank};
  }

  [[nodiscard]] Failure stuck() const {
    const Progress progress{
        .begun = [this](Index index) { return intervals_[index].begin != kNotYet; },
        .ended = [this](Index index) { return intervals_[index].end != kNotYet; },
    };
    return why_stuck(program_, matching_, prerequisites_, progress, step_);
  }

  const Program& program_;
  Compute& compute_;
  const RunSettings& settings_;
  bool clock_;
  const Matching matching_;
  const Prerequisites prerequisites_;
  Random random_;
  std::vector<RankMemory> memories_;  // [rank]
  LocalTransport transport_;
  std::vector<Node> nodes_;               // [index]
  std::vector<std::uint32_t> pending_;    // [index]
  std::vector<std::uint32_t> ends_left_;  // [index] transfers not ended yet, once begun
  std::vector<Interval> intervals_;       // [index] kNotYet: has not begun, has not ended
  std::vector<Index> ready_;
  std::optional<Failure> failure_;
  std::chrono::steady_clock::time_point start_;
  std::int64_t now_ = 0;
  std::size_t done_ = 0;
  int step_ = 0;
};

}  // namespace

RunResult VirtualStreams::run(const Program& program, Compute& compute,
                              const RunSettings& settings) {
  return Machine(program, compute, settings, clock_).run();
}

}  // namespace counterflow::exec
