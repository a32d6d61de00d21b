#include "executor/interpreter.h"

#include <algorithm>
#include <exception>
#include <string>
#include <system_error>
#include <utility>

namespace counterflow::exec {
namespace {

constexpr std::chrono::milliseconds kLookEvery(10);

}  // namespace

Interpreter::Interpreter(const Parts& parts, std::span<const std::uint32_t> ranks)
    : parts_(parts),
      ranks_(ranks.begin(), ranks.end()),
      states_(std::make_unique<State[]>(parts.prerequisites.size())) {
  for (const std::uint32_t rank : ranks_) make_lanes(rank);
}

void Interpreter::make_lanes(std::uint32_t r) {
  const RankProgram& rank = parts_.program.ranks[r];
  std::vector<std::unique_ptr<Lane>> of_stream(rank.streams.size());
  for (std::uint32_t i = 0; i < rank.instructions.size(); ++i) {
    auto& lane = of_stream[rank.instructions[i].stream];
    if (!lane) lane = std::make_unique<Lane>();
    const Index index = parts_.prerequisites.index(r, i);
    lane->instructions.push_back(index);
    states_[index].lane = lane.get();
  }
  for (auto& lane : of_stream) {
    if (lane) lanes_.push_back(std::move(lane));
  }
  size_ += rank.instructions.size();
}

const Instruction& Interpreter::instruction(Index index) const {
  return parts_.program.ranks[parts_.prerequisites.rank(index)]
      .instructions[parts_.prerequisites.instruction(index)];
}

Interval& Interpreter::interval(Index index) {
  return timelines_[parts_.prerequisites.rank(index)]
      .instructions[parts_.prerequisites.instruction(index)];
}

RankProgress Interpreter::progress(std::uint32_t rank) const {
  using namespace std::chrono;
  RankProgress progress{.step = step_, .start_ns = 0, .stopped = now(), .instructions = {}};
  const auto wall = duration_cast<Time>(system_clock::now().time_since_epoch());
  progress.start_ns = (wall - progress.stopped).count();
  const std::size_t size = parts_.program.ranks[rank].instructions.size();
  progress.instructions.reserve(size);
  for (std::uint32_t i = 0; i < size; ++i) {
    const State& state = states_[parts_.prerequisites.index(rank, i)];
    const Time begin{state.begun_at.load(std::memory_order_acquire)};
    progress.instructions.push_back({begin, Time{state.ended_at.load(std::memory_order_acquire)}});
  }
  return progress;
}

std::optional<Failure> Interpreter::run_step(int step, Clock::time_point start, Watch& watch,
                                             std::chrono::nanoseconds grace) {
  begin_step(step, start);
  std::this_thread::sleep_until(start);
  std::vector<std::thread> threads;
  threads.reserve(lanes_.size());
  for (const auto& lane : lanes_) {
    try {
      threads.emplace_back([this, &one = *lane] {
        work(one);
        backs_.release();
      });
    } catch (const std::system_error& error) {
      stop({static_cast<Rank>(ranks_.front()), 0, step,
            std::string("of ") + std::to_string(lanes_.size()) + " streams " +
                std::to_string(threads.size()) + " got a thread, the next did not (" +
                error.what() + "); run fewer ranks here, or raise the limits of threads and memory",
            static_cast<Rank>(ranks_.front())});
      break;
    }
  }
  if (size_ == 0) over_.release();
  while (!over_.try_acquire_for(kLookEvery)) {
    if (std::optional<Failure> failure = watch.look(*this)) stop(std::move(*failure));
  }
  if (!stopped() || all_back(threads.size(), grace)) {
    for (std::thread& thread : threads) thread.join();
  } else {
    abandoned_ = true;
    for (std::thread& thread : threads) thread.detach();
  }
  while (!abandoned_ && backs_.try_acquire()) {
  }
  if (!stopped()) {
    for (const std::uint32_t rank : ranks_) {
      parts_.compute.end_step(static_cast<Rank>(rank), step_);
    }
  }
  const std::scoped_lock lock(failure_mutex_);
  return failure_;
}

bool Interpreter::all_back(std::size_t threads, std::chrono::nanoseconds grace) {
  const auto until = Clock::now() + grace;
  for (std::size_t n = 0; n < threads; ++n) {
    if (!backs_.try_acquire_until(until)) return false;
  }
  return true;
}

void Interpreter::begin_step(int step, Clock::time_point start) {
  step_ = step;
  start_ = start;
  timelines_.assign(parts_.program.ranks.size(), {});
  left_.store(size_);
  for (const std::uint32_t r : ranks_) {
    const RankProgram& rank = parts_.program.ranks[r];
    for (std::uint32_t i = 0; i < rank.instructions.size(); ++i) {
      const Index index = parts_.prerequisites.index(r, i);
      State& state = states_[index];
      state.pending.store(parts_.prerequisites.counts()[index], std::memory_order_relaxed);
      state.begun_at.store(-1, std::memory_order_relaxed);
      state.ended_at.store(-1, std::memory_order_relaxed);
    }
    timelines_[r].instructions.assign(rank.instructions.size(), {});
    parts_.memories[r].clear();
    parts_.compute.begin_step(static_cast<Rank>(r), step);
  }
  parts_.transport.begin_step(step, *this);
}

void Interpreter::work(Lane& lane) {
  for (const Index index : lane.instructions) {
    while (states_[index].pending.load(std::memory_order_acquire) > 0) {
      if (stopped()) return;
      lane.tokens.acquire();
    }
    if (stopped()) return;
    begin(index);
  }
}

void Interpreter::satisfy(std::span<const Index> waiting) {
  for (const Index index : waiting) {
    if (states_[index].pending.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      states_[index].lane->tokens.release();
    }
  }
}

void Interpreter::begin(Index index) {
  const std::uint32_t rank = parts_.prerequisites.rank(index);
  const Instruction& what = instruction(index);
  interval(index).begin = std::max(now(), Time{0});
  // Set first: the other end may end it at once.
  states_[index].ends_left.store(what.body.count, std::memory_order_release);
  states_[index].begun_at.store(interval(index).begin.count(), std::memory_order_release);
  satisfy(parts_.prerequisites.after_begin(index));
  switch (what.kind) {
    case InstructionKind::run:
      if (call(index, rank, what)) end(index);
      break;
    case InstructionKind::transfer:
      for (std::uint32_t k = 0; k < what.body.count && !stopped(); ++k) {
        parts_.transport.post({rank, what.body.first + k});
      }
      if (what.body.count == 0) end(index);
      break;
    case InstructionKind::step_end:
      end(index);
      break;
    case InstructionKind::collective:
      parts_.transport.arrive(rank, parts_.prerequisites.instruction(index));
      break;
  }
}

void Interpreter::end(Index index) {
  interval(index).end = now();
  states_[index].ended_at.store(interval(index).end.count(), std::memory_order_release);
  satisfy(parts_.prerequisites.after_end(index));
  if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) over_.release();
}

void Interpreter::wake_all() {
  for (const auto& lane : lanes_) lane->tokens.release();
  over_.release();
}

bool Interpreter::call(Index index, std::uint32_t rank, const Instruction& what) {
  RankMemory& memory = parts_.memories[rank];
  const auto accesses = parts_.program.ranks[rank].accesses_of(what);
  for (const Access& access : accesses) {
    if (!memory.use(access)) {
      fail(index, memory.complaint(access));
      return false;
    }
  }
  try {
    parts_.compute.run({.rank = static_cast<Rank>(rank),
                        .step = step_,
                        .stream = what.stream,
                        .kernel = &parts_.program.kernels[what.kernel],
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

void Interpreter::transfer_ended(Matching::End end) {
  one_end(
      parts_.prerequisites.index(end.rank, parts_.matching.instruction(end.rank, end.transfer)));
}

void Interpreter::transfer_failed(Matching::End end, std::string reason, std::uint32_t culprit) {
  stop({static_cast<Rank>(end.rank), parts_.matching.instruction(end.rank, end.transfer), step_,
        std::move(reason), static_cast<Rank>(culprit)});
}

void Interpreter::collective_ended(std::uint32_t rank, std::uint32_t instruction) {
  end(parts_.prerequisites.index(rank, instruction));
}

void Interpreter::collective_failed(std::uint32_t rank, std::uint32_t instruction,
                                    std::string reason, std::uint32_t culprit) {
  stop(
      {static_cast<Rank>(rank), instruction, step_, std::move(reason), static_cast<Rank>(culprit)});
}

void Interpreter::one_end(Index index) {
  if (states_[index].ends_left.fetch_sub(1, std::memory_order_acq_rel) == 1) end(index);
}

void Interpreter::fail(Index index, std::string reason) {
  const auto rank = static_cast<Rank>(parts_.prerequisites.rank(index));
  stop({rank, parts_.prerequisites.instruction(index), step_, std::move(reason), rank});
}

void Interpreter::stop(Failure failure) {
  {
    const std::scoped_lock lock(failure_mutex_);
    if (!failure_) failure_ = std::move(failure);
  }
  stopped_.store(true, std::memory_order_release);
  wake_all();
}

}  // namespace counterflow::exec
