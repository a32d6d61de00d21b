#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/graph/happens_before.h"
#include "scheduler/graph/recordings.h"
#include "scheduler/graph/slot_uses.h"
#include "scheduler/ir/diagnostic_text.h"
#include "scheduler/ir/schedule_file.h"
#include "scheduler/verify/by_rank.h"
#include "scheduler/verify/rules.h"

namespace counterflow::rules {
namespace {

// Who used a slot since, and including, the last write.
struct SlotUses {
  std::uint32_t writer = kNone;
  std::vector<std::uint32_t> readers{};
};

// One rank in issue order: every use must follow the last write, every write also the reads before.
class RaceFinder {
 public:
  RaceFinder(const Program& program, std::size_t number, const Recordings& recordings,
             Diagnostics& out)
      : number_(static_cast<Rank>(number)),
        communicators_(program.communicators),
        rank_(program.ranks[number]),
        out_(out),
        recordings_(recordings),
        order_(rank_),
        uses_(rank_.slots.size()) {}

  void find() {
    for (at_ = 0; at_ < rank_.instructions.size(); ++at_) {
      const Instruction& instruction = rank_.instructions[at_];
      order_.begin(at_, recordings_);
      for_each_use(rank_, instruction, [&](const Access& use) { check(use); });
      if (instruction.kind == InstructionKind::collective) check_call(instruction);
      order_.finish();
    }
  }

 private:
  void check(const Access& use) {
    SlotUses& uses = uses_[use.slot];
    require(uses.writer, use);
    if (!use.is_write) {
      // Whoever follows a run follows the runs before it on its stream.
      if (!uses.readers.empty() && precedes_on_stream(uses.readers.back())) uses.readers.pop_back();
      uses.readers.push_back(at_);
      return;
    }
    for (const std::uint32_t reader : uses.readers) require(reader, use);
    uses.readers.clear();
    uses.writer = at_;
  }

  [[nodiscard]] bool precedes_on_stream(std::uint32_t earlier) const {
    const Instruction& a = rank_.instructions[earlier];
    const Instruction& b = rank_.instructions[at_];
    return a.kind == InstructionKind::run && b.kind == InstructionKind::run && a.stream == b.stream;
  }

  // Collectives carry no name: what calls meet is decided by their order on each rank, so a stream
  // or an event must fix it.
  void check_call(const Instruction& instruction) {
    auto [last, is_first] = last_call_.try_emplace(instruction.communicator, at_);
    if (is_first) return;
    const std::uint32_t before = std::exchange(last->second, at_);
    const Instruction& other = rank_.instructions[before];
    if (other.stream == instruction.stream || order_.follows(before)) return;
    out_.push_back(
        {.rule = "race",
         .rank = number_,
         .index = at_,
         .op = instruction.op,
         .message = fmt::format(
             "two collectives on communicator {} ({}), {} and {}, {}: their order is not fixed, "
             "and "
             "ranks may go through them in different ones; let the second wait for the first, or "
             "put both on one stream",
             instruction.communicator, name(communicators_[instruction.communicator].kind),
             call(other), call(instruction),
             shares_event(other, instruction) ? "become ready on the same event"
                                              : "are ordered by no event and no stream")});
  }

  [[nodiscard]] std::string call(const Instruction& instruction) const {
    const Collective& collective = rank_.collectives_of(instruction).front();
    return fmt::format("{} {}", name(collective.kind), collective.sequence);
  }

  [[nodiscard]] bool shares_event(const Instruction& a, const Instruction& b) const {
    return std::ranges::any_of(rank_.waits_of(a), [&](const EventWait& wait) {
      return std::ranges::find(rank_.waits_of(b), wait) != rank_.waits_of(b).end();
    });
  }

  // The op of an instruction that uses a slot; of a group, that of the transfer.
  [[nodiscard]] Op op_at(std::uint32_t index, std::uint32_t slot) const {
    const Instruction& instruction = rank_.instructions[index];
    for (const Transfer& transfer : rank_.transfers_of(instruction)) {
      if (transfer.slot == slot) return op_of(instruction, transfer);
    }
    return instruction.op;
  }

  void require(std::uint32_t earlier, const Access& use) {
    if (earlier == kNone || earlier == at_ || order_.follows(earlier)) return;
    const Op here = op_at(at_, use.slot);
    const Op other = op_at(earlier, use.slot);
    out_.push_back({.rule = "race",
                    .rank = number_,
                    .index = at_,
                    .op = here,
                    .message = fmt::format(
                        "{} {} buffer slot {} while {} may still use it: no event and no stream "
                        "orders them; let it wait for the event of {}",
                        to_string(here), use.is_write ? "writes" : "reads", use.slot,
                        to_string(other), to_string(other))});
  }

  Rank number_;
  const std::vector<Communicator>& communicators_;
  const RankProgram& rank_;
  Diagnostics& out_;
  const Recordings& recordings_;
  HappensBefore order_;
  std::vector<SlotUses> uses_;  // [slot]
  std::map<CommunicatorId, std::uint32_t> last_call_;
  std::uint32_t at_ = 0;
};

}  // namespace

void races(const Program& program, const References& references, Diagnostics& out) {
  by_rank(program, out, [&](std::size_t rank, Diagnostics& found) {
    RaceFinder(program, rank, references.recordings[rank], found).find();
  });
}

}  // namespace counterflow::rules
