#include "executor/virtual_streams.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <utility>
#include <vector>

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
class Machine {
 public:
  Machine(const Program& program, Compute& compute, const RunSettings& settings, bool clock)
      : program_(program),
        compute_(compute),
        settings_(settings),
        clock_(clock),
        matching_(program),
        prerequisites_(program, settings.execution),
        random_(settings.seed),
        transfers_(program.ranks.size()) {
    for (const RankProgram& rank : program.ranks) memories_.emplace_back(rank);
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
      result.steps.push_back({std::move(timelines_)});
    }
    result.failure = std::move(failure_);
    return result;
  }

 private:
  struct End {
    bool posted = false;
    std::vector<std::byte> buffered{};  // of a send whose receive is not there yet
  };

  void begin_step() {
    pending_.assign(prerequisites_.counts().begin(), prerequisites_.counts().end());
    ends_left_.assign(pending_.size(), 0);
    timelines_.assign(program_.ranks.size(), {});
    now_ = 0;
    done_ = 0;
    start_ = std::chrono::steady_clock::now();
    for (std::size_t r = 0; r < program_.ranks.size(); ++r) {
      timelines_[r].instructions.assign(program_.ranks[r].instructions.size(), {});
      transfers_[r].assign(program_.ranks[r].transfers.size(), {});
      memories_[r].clear();
      compute_.begin_step(static_cast<Rank>(r), step_);
    }
    for (Index index = 0; index < pending_.size(); ++index) {
      if (pending_[index] == 0) ready_.push_back(index);
    }
  }

  Index draw() {
    const std::uint32_t at = random_.below(static_cast<std::uint32_t>(ready_.size()));
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

  [[nodiscard]] const Instruction& instruction(Index index) const {
    return program_.ranks[prerequisites_.rank(index)]
        .instructions[prerequisites_.instruction(index)];
  }
  Interval& interval(Index index) {
    return timelines_[prerequisites_.rank(index)].instructions[prerequisites_.instruction(index)];
  }

  void begin(Index index) {
    interval(index).begin = now();
    satisfy(prerequisites_.after_begin(index));
    const Instruction& what = instruction(index);
    if (what.kind == InstructionKind::run) {
      call(index, what);
      if (!failure_) end(index);
    } else if (what.kind == InstructionKind::transfer) {
      post(index, what);
    } else if (what.kind == InstructionKind::step_end) {
      end(index);
    } else {
      fail(index, "collectives are not run by this backend yet");
    }
  }

  void end(Index index) {
    interval(index).end = now();
    ++done_;
    satisfy(prerequisites_.after_end(index));
  }

  void call(Index index, const Instruction& what) {
    const std::uint32_t rank = prerequisites_.rank(index);
    const RankProgram& list = program_.ranks[rank];
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

  void post(Index index, const Instruction& what) {
    const std::uint32_t rank = prerequisites_.rank(index);
    ends_left_[index] = what.body.count;
    for (std::uint32_t k = what.body.first; k < what.body.first + what.body.count; ++k) {
      transfers_[rank][k].posted = true;
      if (!failure_) meet(rank, k);
    }
    if (what.body.count == 0) end(index);
  }

  void meet(std::uint32_t rank, std::uint32_t transfer) {
    const Matching::End other = matching_.partner(rank, transfer);
    const bool send = program_.ranks[rank].transfers[transfer].is_send;
    const bool buffered = settings_.execution.semantics == Semantics::buffered;
    const bool there = other.exists() && transfers_[other.rank][other.transfer].posted;
    if (!there) {
      if (send && buffered) {
        const Buffer data = data_of(rank, transfer);
        transfers_[rank][transfer].buffered.assign(data.begin(), data.end());
        check_version(rank, transfer);
        ended(rank, transfer);
      }
      return;
    }
    const Matching::End from = send ? Matching::End{rank, transfer} : other;
    const Matching::End to = send ? other : Matching::End{rank, transfer};
    const bool sender_left = !send && buffered;
    if (!sender_left) check_version(from.rank, from.transfer);
    check_version(to.rank, to.transfer);
    move(from, to, sender_left);
    if (failure_) return;
    ended(to.rank, to.transfer);
    if (!sender_left) ended(from.rank, from.transfer);
  }

  void move(Matching::End from, Matching::End to, bool from_copy) {
    const Transfer& sent = program_.ranks[from.rank].transfers[from.transfer];
    const Transfer& received = program_.ranks[to.rank].transfers[to.transfer];
    if (sent.payload != received.payload || sent.size != received.size ||
        sent.type != received.type) {
      return fail(owner(to), "receives another message than it names");
    }
    const std::vector<std::byte>& copy = transfers_[from.rank][from.transfer].buffered;
    const Buffer source = from_copy ? Buffer(const_cast<std::byte*>(copy.data()), copy.size())
                                    : data_of(from.rank, from.transfer);
    const Buffer target = data_of(to.rank, to.transfer);
    if (!source.empty()) std::memcpy(target.data(), source.data(), source.size());
  }

  Buffer data_of(std::uint32_t rank, std::uint32_t transfer) {
    const Transfer& what = program_.ranks[rank].transfers[transfer];
    return what.slot == kNone ? Buffer() : memories_[rank].buffer(what.slot);
  }

  void check_version(std::uint32_t rank, std::uint32_t transfer) {
    const Transfer& what = program_.ranks[rank].transfers[transfer];
    if (what.slot == kNone) return;
    const Access access{.slot = what.slot,
                        .version = what.version & 0x7fffffffU,
                        .is_write = what.is_send ? 0U : 1U};
    RankMemory& memory = memories_[rank];
    if (!memory.finds(access)) return fail(owner({rank, transfer}), memory.complaint(access));
    memory.wrote(access);
  }

  [[nodiscard]] Index owner(Matching::End end) const {
    return prerequisites_.index(end.rank, matching_.instruction(end.rank, end.transfer));
  }

  void ended(std::uint32_t rank, std::uint32_t transfer) {
    const Index index = owner({rank, transfer});
    if (--ends_left_[index] == 0) end(index);
  }

  void fail(Index index, std::string reason) {
    if (failure_) return;
    failure_ = Failure{static_cast<Rank>(prerequisites_.rank(index)),
                       prerequisites_.instruction(index), step_, std::move(reason)};
  }

  // Nothing can begin: the first instruction, in issue order, that has begun and not ended, else
  // the first that has not begun.
  [[nodiscard]] Failure stuck() const {
    for (Index index = 0; index < pending_.size(); ++index) {
      if (ends_left_[index] > 0) {
        return {static_cast<Rank>(prerequisites_.rank(index)), prerequisites_.instruction(index),
                step_,
                fmt::format("waits for the other end of {} of its transfers", ends_left_[index])};
      }
    }
    for (Index index = 0; index < pending_.size(); ++index) {
      if (pending_[index] > 0) {
        return {static_cast<Rank>(prerequisites_.rank(index)), prerequisites_.instruction(index),
                step_, "waits for an instruction of its rank that never ends"};
      }
    }
    return {};
  }

  const Program& program_;
  Compute& compute_;
  const RunSettings& settings_;
  bool clock_;
  const Matching matching_;
  const Prerequisites prerequisites_;
  Random random_;
  std::vector<RankMemory> memories_;         // [rank]
  std::vector<std::vector<End>> transfers_;  // [rank][transfer]
  std::vector<std::uint32_t> pending_;       // [index]
  std::vector<std::uint32_t> ends_left_;     // [index] transfers not ended yet
  std::vector<Index> ready_;
  std::vector<RankTimeline> timelines_;
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
