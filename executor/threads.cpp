#include "executor/threads.h"

#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <semaphore>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "executor/exchange.h"
#include "executor/meetings.h"
#include "executor/progress.h"
#include "scheduler/graph/matching.h"
#include "scheduler/graph/prerequisites.h"

namespace counterflow::exec {
namespace {

using Index = Prerequisites::Index;
using Clock = std::chrono::steady_clock;

// One stream of one rank: its instructions, and a token for each time one of them may have become
// ready.
struct Lane {
  std::uint32_t rank = 0;
  std::vector<Index> instructions{};
  std::counting_semaphore<> tokens{0};
};

// One run of one program.
class Machine {
 public:
  Machine(const Program& program, Compute& compute, const RunSettings& settings,
          std::chrono::nanoseconds patience)
      : program_(program),
        compute_(compute),
        settings_(settings),
        patience_(patience),
        matching_(program),
        prerequisites_(program, settings.execution),
        states_(std::make_unique<State[]>(prerequisites_.size())),
        exchange_(program, matching_, settings.execution.semantics, memories_),
        meetings_(program, memories_) {
    for (const RankProgram& rank : program.ranks) memories_.emplace_back(rank);
    make_lanes();
  }

  RunResult run() {
    RunResult result;
    for (step_ = 0; step_ < settings_.steps; ++step_) {
      begin_step();
      {
        std::vector<std::jthread> threads;
        threads.reserve(lanes_.size());
        for (const auto& lane : lanes_) threads.emplace_back([&] { work(*lane); });
      }
      if (failure_) break;
      for (std::size_t r = 0; r < program_.ranks.size(); ++r) {
        compute_.end_step(static_cast<Rank>(r), step_);
      }
      result.steps.push_back({std::move(timelines_)});
    }
    result.failure = std::move(failure_);
    return result;
  }

 private:
  struct State {
    std::atomic<std::uint32_t> pending{0};
    std::atomic<std::uint32_t> ends_left{0};
    std::atomic<bool> begun{false};
    std::atomic<bool> ended{false};
    Lane* lane = nullptr;
  };

  void make_lanes() {
    for (std::uint32_t r = 0; r < program_.ranks.size(); ++r) {
      const RankProgram& rank = program_.ranks[r];
      std::vector<std::unique_ptr<Lane>> of_stream(rank.streams.size());
      for (std::uint32_t i = 0; i < rank.instructions.size(); ++i) {
        auto& lane = of_stream[rank.instructions[i].stream];
        if (!lane) {
          lane = std::make_unique<Lane>();
          lane->rank = r;
        }
        const Index index = prerequisites_.index(r, i);
        lane->instructions.push_back(index);
        states_[index].lane = lane.get();
      }
      for (auto& lane : of_stream) {
        if (lane) lanes_.push_back(std::move(lane));
      }
    }
  }

  void begin_step() {
    timelines_.assign(program_.ranks.size(), {});
    exchange_.clear();
    meetings_.clear();
    left_.store(prerequisites_.size());
    for (Index index = 0; index < prerequisites_.size(); ++index) {
      State& state = states_[index];
      state.pending.store(prerequisites_.counts()[index], std::memory_order_relaxed);
      state.begun.store(false, std::memory_order_relaxed);
      state.ended.store(false, std::memory_order_relaxed);
    }
    for (std::size_t r = 0; r < program_.ranks.size(); ++r) {
      timelines_[r].instructions.assign(program_.ranks[r].instructions.size(), {});
      memories_[r].clear();
      compute_.begin_step(static_cast<Rank>(r), step_);
    }
    start_ = Clock::now();
  }

  [[nodiscard]] Time now() const { return std::chrono::duration_cast<Time>(Clock::now() - start_); }

  void work(Lane& lane) {
    for (const Index index : lane.instructions) {
      if (!wait_for_turn(lane, index)) return;
      begin(index);
    }
    // The last transfers may end after they were posted: whoever ends them does the rest.
    while (left_.load(std::memory_order_acquire) > 0 && wait_for_token(lane)) {
    }
  }

  // False: the run has stopped.
  bool wait_for_turn(Lane& lane, Index index) {
    while (states_[index].pending.load(std::memory_order_acquire) > 0) {
      if (!wait_for_token(lane)) return false;
    }
    return !stopped_.load(std::memory_order_acquire);
  }

  bool wait_for_token(Lane& lane) {
    std::size_t before = left_.load();
    while (!lane.tokens.try_acquire_for(patience_)) {
      if (stopped_.load()) return false;
      const std::size_t after = left_.load();
      if (after == 0) return true;
      if (after == before) {
        give_up();
        return false;
      }
      before = after;
    }
    return !stopped_.load(std::memory_order_acquire);
  }

  void satisfy(std::span<const Index> waiting) {
    for (const Index index : waiting) {
      if (states_[index].pending.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        states_[index].lane->tokens.release();
      }
    }
  }

  Interval& interval(Index index) {
    return timelines_[prerequisites_.rank(index)].instructions[prerequisites_.instruction(index)];
  }

  void begin(Index index) {
    const std::uint32_t rank = prerequisites_.rank(index);
    const Instruction& what = program_.ranks[rank].instructions[prerequisites_.instruction(index)];
    interval(index).begin = now();
    states_[index].begun.store(true, std::memory_order_release);
    if (what.kind == InstructionKind::transfer) {
      // Set first: the other end may end it at once.
      states_[index].ends_left.store(what.body.count, std::memory_order_release);
    }
    satisfy(prerequisites_.after_begin(index));
    switch (what.kind) {
      case InstructionKind::run:
        if (call(index, rank, what)) end(index);
        break;
      case InstructionKind::transfer:
        post(index, rank, what);
        break;
      case InstructionKind::step_end:
        end(index);
        break;
      case InstructionKind::collective:
        meet(index);
        break;
    }
  }

  void end(Index index) {
    interval(index).end = now();
    states_[index].ended.store(true, std::memory_order_release);
    satisfy(prerequisites_.after_end(index));
    if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) wake_all();
  }

  void wake_all() {
    for (const auto& lane : lanes_) lane->tokens.release();
  }

  bool call(Index index, std::uint32_t rank, const Instruction& what) {
    RankMemory& memory = memories_[rank];
    const auto accesses = program_.ranks[rank].accesses_of(what);
    for (const Access& access : accesses) {
      if (!memory.finds(access)) {
        fail(index, memory.complaint(access));
        return false;
      }
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
      return true;
    } catch (const std::exception& error) {
      fail(index, error.what());
      return false;
    }
  }

  void post(Index index, std::uint32_t rank, const Instruction& what) {
    for (std::uint32_t k = what.body.first; k < what.body.first + what.body.count; ++k) {
      const Exchange::Outcome outcome = exchange_.post(rank, k);
      if (!outcome.fault.empty()) return fail(owner(outcome.at), outcome.fault);
      if (outcome.other) ended(owner(matching_.partner(rank, k)));
      if (outcome.mine) ended(index);
    }
    if (what.body.count == 0) end(index);
  }

  void meet(Index index) {
    const Meetings::Outcome outcome =
        meetings_.arrive(prerequisites_.rank(index), prerequisites_.instruction(index));
    const auto member = [this](const Meetings::Member& each) {
      return prerequisites_.index(each.rank, each.instruction);
    };
    if (!outcome.fault.empty()) return fail(member(outcome.at), outcome.fault);
    for (const Meetings::Member& each : outcome.ended) end(member(each));
  }

  [[nodiscard]] Index owner(Matching::End end) const {
    return prerequisites_.index(end.rank, matching_.instruction(end.rank, end.transfer));
  }

  void ended(Index index) {
    if (states_[index].ends_left.fetch_sub(1, std::memory_order_acq_rel) == 1) end(index);
  }

  void fail(Index index, std::string reason) {
    stop({static_cast<Rank>(prerequisites_.rank(index)), prerequisites_.instruction(index), step_,
          std::move(reason)});
  }

  void give_up() {
    const Progress progress{
        .begun = [this](Index index) { return states_[index].begun.load(); },
        .ended = [this](Index index) { return states_[index].ended.load(); },
    };
    stop(why_stuck(program_, matching_, prerequisites_, progress, step_));
  }

  // The first failure is the one that is told.
  void stop(Failure failure) {
    {
      const std::scoped_lock lock(failure_mutex_);
      if (!failure_) failure_ = std::move(failure);
    }
    stopped_.store(true, std::memory_order_release);
    wake_all();
  }

  const Program& program_;
  Compute& compute_;
  const RunSettings& settings_;
  std::chrono::nanoseconds patience_;
  const Matching matching_;
  const Prerequisites prerequisites_;
  std::unique_ptr<State[]> states_;   // [index]
  std::vector<RankMemory> memories_;  // [rank]
  Exchange exchange_;
  Meetings meetings_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<RankTimeline> timelines_;
  std::atomic<std::size_t> left_{0};  // instructions that have not ended
  std::atomic<bool> stopped_{false};
  std::mutex failure_mutex_;
  std::optional<Failure> failure_;
  Clock::time_point start_;
  int step_ = 0;
};

}  // namespace

RunResult Threads::run(const Program& program, Compute& compute, const RunSettings& settings) {
  return Machine(program, compute, settings, patience_).run();
}

}  // namespace counterflow::exec
