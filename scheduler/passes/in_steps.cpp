#include "scheduler/passes/in_steps.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "scheduler/graph/slot_uses.h"
#include "scheduler/passes/passes.h"
#include "scheduler/problem/steps.h"

namespace counterflow {
namespace {

// How much further the numbers of a rank are after each step.
struct Counts {
  explicit Counts(const RankProgram& one) : generations(one.events), versions(one.slots.size()) {
    for (const Instruction& i : one.instructions) {
      if (i.records != kNone) ++generations[i.records];
      for_each_use(one, i, [&](const Access& use) { versions[use.slot] += use.is_write; });
      for (const Transfer& t : one.transfers_of(i)) ++messages[channel(i, t)];
      if (i.kind == InstructionKind::collective) ++calls[i.communicator];
    }
  }
  using Channel = std::tuple<CommunicatorId, std::uint16_t, bool>;
  static Channel channel(const Instruction& i, const Transfer& t) {
    return {i.communicator, t.peer, t.is_send};
  }

  std::vector<std::uint32_t> generations;  // [event]
  std::vector<std::uint32_t> versions;     // [slot]
  std::map<Channel, std::uint32_t> messages;
  std::map<CommunicatorId, std::uint32_t> calls;
};

// Who uses each slot of a rank last in a step: the last writer and the readers after it.
std::vector<std::vector<std::uint32_t>> last_users(const RankProgram& one) {
  std::vector<std::vector<std::uint32_t>> users(one.slots.size());
  for (std::uint32_t i = 0; i < one.instructions.size(); ++i) {
    for_each_use(one, one.instructions[i], [&](const Access& use) {
      auto& list = users[use.slot];
      if (use.is_write) list.clear();
      if (list.empty() || list.back() != i) list.push_back(i);
    });
  }
  return users;
}

// The last users of all slots record events, for the next step to wait for.
RankProgram with_events(RankProgram one) {
  for (const auto& users : last_users(one)) {
    for (const std::uint32_t user : users) {
      Instruction& last = one.instructions[user];
      if (last.records == kNone) last.records = one.events++;
    }
  }
  return one;
}

// One rank's list, step after step.
class RankSteps {
 public:
  RankSteps(const Problem& problem, RankProgram one)
      : microbatches_(problem.microbatches),
        one_(with_events(std::move(one))),
        users_(last_users(one_)),
        counts_(one_) {
    all_.streams = one_.streams;
    all_.slots = one_.slots;
    all_.events = one_.events;
    all_.static_memory = one_.static_memory;
    here_.resize(one_.instructions.size());
  }

  RankProgram repeat(int steps) && {
    for (int step = 0; step < steps; ++step) append_step(step, step + 1 == steps);
    return std::move(all_);
  }

 private:
  [[nodiscard]] bool is_validation(std::uint32_t index) const {
    return one_.instructions[index].op.kind == OpKind::validate_step;
  }

  void append_step(int step, bool is_last) {
    taken_.assign(one_.slots.size(), step == 0);
    step_ = step;
    before_ = here_;
    std::vector<std::uint32_t> left;
    for (std::uint32_t i = 0; i < one_.instructions.size(); ++i) {
      if (is_validation(i) && !is_last) {
        left.push_back(i);
        continue;
      }
      validate_for(i, step - 1);
      append(i, step);
    }
    to_validate_ = std::move(left);
  }

  // What is left of the step before and must be there first.
  void validate_for(std::uint32_t next, int step) {
    std::erase_if(to_validate_, [&](std::uint32_t validation) {
      if (!is_needed_by(validation, next)) return false;
      append(validation, step);
      before_[validation] = here_[validation];
      return true;
    });
  }

  // Is it of the same copy of a stage, or would it overwrite what the validation reads?
  [[nodiscard]] bool is_needed_by(std::uint32_t validation, std::uint32_t next) const {
    const Op& copy = one_.instructions[validation].op;
    const Instruction& instruction = one_.instructions[next];
    if (instruction.kind == InstructionKind::run) {
      for (const Op& op : {instruction.op, instruction.paired}) {
        if (op.kind == OpKind::none) continue;
        if (op.stage == copy.stage && op.replica == copy.replica) return true;
      }
    }
    bool overwrites = false;
    for_each_use(one_, instruction, [&](const Access& use) {
      if (use.is_write == 0) return;
      for (const Access& read : one_.accesses_of(one_.instructions[validation])) {
        overwrites |= read.slot == use.slot;
      }
    });
    return overwrites;
  }

  void append(std::uint32_t index, int step) {
    Instruction next = one_.instructions[index];
    const auto k = static_cast<std::uint32_t>(step);
    next.op = moved(next.op, step);
    next.paired = moved(next.paired, step);
    if (next.records != kNone) next.generation += k * counts_.generations[next.records];
    append_waits(next, index, k);
    append_body(next, k, step);
    here_[index] = static_cast<std::uint32_t>(all_.instructions.size());
    all_.instructions.push_back(next);
  }

  [[nodiscard]] Op moved(Op op, int step) const {
    if (op.kind != OpKind::none && has_microbatch(op.kind)) op.microbatch += step * microbatches_;
    return op;
  }

  void append_waits(Instruction& next, std::uint32_t index, std::uint32_t k) {
    const Instruction& from = one_.instructions[index];
    const auto first = static_cast<std::uint32_t>(all_.waits.size());
    copy_waits(from, k);
    if (is_validation(index)) {
      // Those before it on its stream may wait for it too, and are not before it any more.
      for (std::uint32_t other = 0; other < index; ++other) {
        if (is_validation(other)) copy_waits(one_.instructions[other], k);
      }
    }
    for_each_use(one_, from, [&](const Access& use) {
      if (static_cast<int>(k) < step_ || std::exchange(taken_[use.slot], true)) return;
      for (const std::uint32_t user : users_[use.slot]) wait_for(before_[user], next);
    });
    next.waits = {first, static_cast<std::uint32_t>(all_.waits.size()) - first};
  }

  void copy_waits(const Instruction& from, std::uint32_t k) {
    for (EventWait wait : one_.waits_of(from)) {
      wait.generation += k * counts_.generations[wait.event];
      all_.waits.push_back(wait);
    }
  }

  void wait_for(std::uint32_t earlier, const Instruction& next) {
    const Instruction& user = all_.instructions[earlier];
    const bool in_order = user.kind == InstructionKind::run && next.kind == InstructionKind::run &&
                          user.stream == next.stream;
    if (!in_order) all_.waits.push_back({.event = user.records, .generation = user.generation});
  }

  void append_body(Instruction& next, std::uint32_t k, int step) {
    const Instruction from = next;  // its body is still that of one step
    if (from.kind == InstructionKind::run) {
      next.body.first = static_cast<std::uint32_t>(all_.accesses.size());
      for (Access access : one_.accesses_of(from)) {
        access.version = (access.version + k * counts_.versions[access.slot]) & 0x7fffffffU;
        all_.accesses.push_back(access);
      }
    } else if (from.kind == InstructionKind::transfer) {
      next.body.first = static_cast<std::uint32_t>(all_.transfers.size());
      for (Transfer transfer : one_.transfers_of(from)) {
        transfer.payload.microbatch += step * microbatches_;
        transfer.sequence += k * counts_.messages.at(Counts::channel(from, transfer));
        if (transfer.slot != kNone) transfer.version += k * counts_.versions[transfer.slot];
        all_.transfers.push_back(transfer);
      }
    } else if (from.kind == InstructionKind::collective) {
      next.body.first = static_cast<std::uint32_t>(all_.collectives.size());
      for (Collective collective : one_.collectives_of(from)) {
        collective.sequence += k * counts_.calls.at(from.communicator);
        if (collective.slot != kNone) collective.version += k * counts_.versions[collective.slot];
        all_.collectives.push_back(collective);
      }
    }
  }

  const int microbatches_;
  const RankProgram one_;
  const std::vector<std::vector<std::uint32_t>> users_;  // [slot] the last in a step
  const Counts counts_;
  RankProgram all_;
  int step_ = 0;                              // that is being appended
  std::vector<std::uint32_t> here_, before_;  // [instruction] where it is, this time and the last
  std::vector<std::uint32_t> to_validate_;    // of the step before
  std::vector<std::uint8_t> taken_;           // [slot] has this step begun to use it?
};

}  // namespace

Program in_steps(const Problem& one, const Program& program, int steps) {
  if (steps == 1) return program;
  const Problem all = in_steps(one, steps);
  Program repeated = program;
  repeated.microbatches = all.microbatches;
  for (RankProgram& rank : repeated.ranks) rank = RankSteps(one, std::move(rank)).repeat(steps);
  return thin_waits(all, std::move(repeated));
}

}  // namespace counterflow
