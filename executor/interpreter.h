#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <semaphore>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "executor/backend.h"
#include "executor/progress.h"
#include "executor/transport.h"
#include "scheduler/graph/matching.h"
#include "scheduler/graph/prerequisites.h"

namespace counterflow::exec {

class Interpreter;

// Looks after a step while it runs. Asked every few milliseconds, from one thread.
class Watch {
 public:
  virtual ~Watch() = default;
  // Why the step must stop; nothing: it may go on.
  [[nodiscard]] virtual std::optional<Failure> look(Interpreter& run) = 0;
};

// Runs the instructions of some ranks of a program, each of their streams a thread: an instruction
// begins when everything that holds it back has ended, calls the compute or posts its messages, and
// lets go those that wait for it. Who else runs the other ranks, and where, only the transport
// knows.
class Interpreter final : public Transport::Listener {
 public:
  using Index = Prerequisites::Index;
  using Clock = std::chrono::steady_clock;

  // What it works on; everything must outlive it. Of `memories` [rank] those of `ranks` are used.
  struct Parts {
    const Program& program;
    const Matching& matching;
    const Prerequisites& prerequisites;
    Compute& compute;
    Transport& transport;
    std::vector<RankMemory>& memories;
  };
  Interpreter(const Parts& parts, std::span<const std::uint32_t> ranks);
  ~Interpreter() override = default;

  // Runs a step to its end, or until something fails or the watch says so; times count from
  // `start`. Once stopped, threads that do not come back within `grace` are left behind: then
  // abandoned() is true and the interpreter must never be destroyed.
  [[nodiscard]] std::optional<Failure> run_step(int step, Clock::time_point start, Watch& watch,
                                                std::chrono::nanoseconds grace);
  [[nodiscard]] bool abandoned() const { return abandoned_; }
  // Of the last step, [rank]; those of ranks not run here are empty. To be taken away.
  [[nodiscard]] std::vector<RankTimeline>& timelines() { return timelines_; }

  // From any thread: the first reason given is the one that counts.
  void stop(Failure failure);
  void fail(Index index, std::string reason);
  [[nodiscard]] bool stopped() const { return stopped_.load(std::memory_order_acquire); }

  // How far the step is.
  [[nodiscard]] const Parts& parts() const { return parts_; }
  [[nodiscard]] std::span<const std::uint32_t> ranks() const { return ranks_; }
  [[nodiscard]] int step() const { return step_; }
  [[nodiscard]] std::size_t left() const { return left_.load(std::memory_order_acquire); }
  [[nodiscard]] bool begun(Index index) const {
    return states_[index].begun_at.load(std::memory_order_acquire) >= 0;
  }
  [[nodiscard]] bool ended(Index index) const {
    return states_[index].ended_at.load(std::memory_order_acquire) >= 0;
  }
  // When it began, from the step's start; below zero: it has not.
  [[nodiscard]] Time begun_at(Index index) const {
    return Time{states_[index].begun_at.load(std::memory_order_acquire)};
  }
  // How far a rank run here is, for the record of what stopped.
  [[nodiscard]] RankProgress progress(std::uint32_t rank) const;
  [[nodiscard]] Time now() const { return std::chrono::duration_cast<Time>(Clock::now() - start_); }
  [[nodiscard]] const Instruction& instruction(Index index) const;

  void transfer_ended(Matching::End end) override;
  void transfer_failed(Matching::End end, std::string reason, std::uint32_t culprit) override;
  void collective_ended(std::uint32_t rank, std::uint32_t instruction) override;
  void collective_failed(std::uint32_t rank, std::uint32_t instruction, std::string reason,
                         std::uint32_t culprit) override;

 private:
  // One stream of one rank: its instructions, and a token for each time one of them may have become
  // ready.
  struct Lane {
    std::vector<Index> instructions{};
    std::counting_semaphore<> tokens{0};
  };
  struct State {
    std::atomic<std::uint32_t> pending{0};
    std::atomic<std::uint32_t> ends_left{0};
    std::atomic<std::int64_t> begun_at{-1};
    std::atomic<std::int64_t> ended_at{-1};
    Lane* lane = nullptr;  // none: of a rank that is not run here
  };

  void make_lanes(std::uint32_t rank);
  void begin_step(int step, Clock::time_point start);
  void work(Lane& lane);
  void satisfy(std::span<const Index> waiting);
  void begin(Index index);
  void end(Index index);
  [[nodiscard]] bool call(Index index, std::uint32_t rank, const Instruction& what);
  void one_end(Index index);
  [[nodiscard]] Interval& interval(Index index);
  void wake_all();
  [[nodiscard]] bool all_back(std::size_t threads, std::chrono::nanoseconds grace);

  const Parts parts_;
  const std::vector<std::uint32_t> ranks_;
  std::unique_ptr<State[]> states_;  // [index]
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<RankTimeline> timelines_;
  std::size_t size_ = 0;              // instructions run here
  std::atomic<std::size_t> left_{0};  // of them, those that have not ended
  std::atomic<bool> stopped_{false};
  std::counting_semaphore<> over_{0};   // one token when all have ended, or the run is stopped
  std::counting_semaphore<> backs_{0};  // one token for each thread that is done
  std::mutex failure_mutex_;
  std::optional<Failure> failure_;
  bool abandoned_ = false;
  Clock::time_point start_;
  std::atomic<int> step_{0};
};

}  // namespace counterflow::exec
