#include "scheduler/verify/dry_run.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "scheduler/graph/blocking.h"

namespace counterflow {
namespace {

class DryRun {
 public:
  DryRun(const Program& program, const References& references, Semantics semantics)
      : program_(program),
        references_(references),
        semantics_(semantics),
        met_(program.communicators.size()) {
    for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) {
      ranks_.push_back(start(program.ranks[rank]));
      runnable_.push_back(static_cast<std::uint32_t>(rank));
    }
  }

  bool gets_through() {
    while (!runnable_.empty()) {
      const std::uint32_t rank = runnable_.back();
      runnable_.pop_back();
      ranks_[rank].is_runnable = false;
      while (advance(rank)) {
      }
    }
    return std::ranges::all_of(ranks_, [](const Progress& rank) { return rank.left == 0; });
  }

 private:
  // The state of an instruction is how many others must begin before it can end, and this as long
  // as it has not begun itself.
  static constexpr std::uint32_t kWaiting = 0x8000'0000U;
  static constexpr std::uint32_t kEnded = 0;

  struct Progress {
    std::vector<std::uint32_t> states;  // [instruction]
    std::vector<std::uint32_t> next;    // [instruction] the next one of its stream
    std::vector<std::uint32_t> fronts;  // [stream] the first instruction it has not got past
    std::vector<std::uint32_t> calls;   // [communicator] collectives begun
    std::size_t left = 0;               // instructions that have not ended
    bool is_runnable = true;
  };
  // The members of a communicator that have begun its k-th collective.
  struct Meeting {
    std::vector<Matching::End> begun;  // `transfer` is the instruction
  };

  Progress start(const RankProgram& list) const {
    Progress rank;
    const auto size = static_cast<std::uint32_t>(list.instructions.size());
    rank.left = size;
    rank.states.resize(size);
    rank.next.assign(size, kNone);
    rank.fronts.assign(list.streams.size(), kNone);
    rank.calls.assign(program_.communicators.size(), 0);
    for (std::uint32_t i = size; i-- > 0;) {
      const Instruction& instruction = list.instructions[i];
      rank.next[i] = rank.fronts[instruction.stream];
      rank.fronts[instruction.stream] = i;
      rank.states[i] = kWaiting + others(list, instruction);
    }
    return rank;
  }

  // Whose begins its end waits for.
  [[nodiscard]] std::uint32_t others(const RankProgram& list,
                                     const Instruction& instruction) const {
    if (instruction.kind == InstructionKind::collective) return 1;  // that all have come
    if (instruction.kind != InstructionKind::transfer) return 0;
    if (semantics_ != Semantics::buffered) return instruction.body.count;
    const auto group = list.transfers_of(instruction);
    return static_cast<std::uint32_t>(
        std::ranges::count_if(group, [](const Transfer& t) { return !t.is_send; }));
  }

  // Once round the streams of a rank. False: nothing moved.
  bool advance(std::uint32_t number) {
    Progress& rank = ranks_[number];
    const RankProgram& list = program_.ranks[number];
    bool moved = false;
    for (std::uint32_t& front : rank.fronts) {
      while (front != kNone) {
        const Instruction& instruction = list.instructions[front];
        if (rank.states[front] >= kWaiting) {
          if (!may_begin(number, instruction)) break;
          begin(number, front);
          moved = true;
        }
        if (rank.states[front] != kEnded && !releases(list, instruction)) break;
        front = rank.next[front];
        moved = true;
      }
    }
    return moved;
  }

  [[nodiscard]] bool releases(const RankProgram& list, const Instruction& instruction) const {
    return instruction.kind == InstructionKind::transfer &&
           releases_stream_at_begin(semantics_, list.transfers_of(instruction));
  }

  [[nodiscard]] bool may_begin(std::uint32_t number, const Instruction& instruction) const {
    const Progress& rank = ranks_[number];
    return std::ranges::all_of(
        program_.ranks[number].waits_of(instruction), [&](const EventWait& wait) {
          const std::uint32_t recorder = references_.recordings[number].recorder(wait);
          return recorder != kNone && rank.states[recorder] == kEnded;
        });
  }

  void begin(std::uint32_t number, std::uint32_t index) {
    const RankProgram& list = program_.ranks[number];
    const Instruction& instruction = list.instructions[index];
    Progress& rank = ranks_[number];
    rank.states[index] -= kWaiting;
    if (rank.states[index] == kEnded) --rank.left;
    if (instruction.kind == InstructionKind::collective) meet(number, index);
    if (instruction.kind != InstructionKind::transfer) return;
    const Range body = instruction.body;
    for (std::uint32_t t = body.first; t < body.first + body.count; ++t) {
      const Matching::End other = references_.meets.partner(number, t);
      if (!other.exists()) continue;
      const std::uint32_t there = references_.meets.instruction(other.rank, other.transfer);
      // A buffered send does not wait for its receive.
      if (semantics_ != Semantics::buffered || list.transfers[t].is_send) come(other.rank, there);
    }
  }

  void come(std::uint32_t number, std::uint32_t index) {
    Progress& rank = ranks_[number];
    if (--rank.states[index] != kEnded) return;
    --rank.left;
    wake(number);
  }

  void meet(std::uint32_t number, std::uint32_t index) {
    const CommunicatorId id = program_.ranks[number].instructions[index].communicator;
    const std::uint32_t k = ranks_[number].calls[id]++;
    if (k >= met_[id].size()) met_[id].resize(k + std::size_t{1});
    auto& begun = met_[id][k].begun;
    begun.push_back({number, index});
    if (begun.size() < program_.communicators[id].members.size()) return;
    for (const Matching::End& member : begun) come(member.rank, member.transfer);
  }

  void wake(std::uint32_t number) {
    if (ranks_[number].is_runnable) return;
    ranks_[number].is_runnable = true;
    runnable_.push_back(number);
  }

  const Program& program_;
  const References& references_;
  Semantics semantics_;
  std::vector<Progress> ranks_;
  std::vector<std::vector<Meeting>> met_;  // [communicator][k]
  std::vector<std::uint32_t> runnable_;
};

}  // namespace

bool runs_through(const Program& program, const References& references, Semantics semantics) {
  return DryRun(program, references, semantics).gets_through();
}

}  // namespace counterflow
