#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/graph/channels.h"
#include "scheduler/graph/op_messages.h"
#include "scheduler/ir/diagnostic_text.h"
#include "scheduler/ir/schedule_file.h"
#include "scheduler/verify/by_rank.h"
#include "scheduler/verify/rules.h"

namespace counterflow::rules {
namespace {

// What a slot holds, or an op means to find there. Of what is saved and of sums of weight
// gradients, `payload` names the stage as from and to.
struct Value {
  BufferPool pool = BufferPool::activations;
  Payload payload;
  friend bool operator==(const Value&, const Value&) = default;
};

struct Held {
  std::uint32_t version = 0;
  Value value;
};

Value message(const Payload& payload) {
  const bool gradient = payload.kind == PayloadKind::gradient;
  return {gradient ? BufferPool::gradients : BufferPool::activations, payload};
}

Value of_stage(BufferPool pool, const Op& op) {
  Value value{pool, {.replica = op.replica, .from = op.stage, .to = op.stage}};
  if (pool == BufferPool::saved) value.payload.microbatch = op.microbatch;
  return value;
}

std::string describe(const Value& value) {
  const Payload& p = value.payload;
  switch (value.pool) {
    case BufferPool::activations:
    case BufferPool::gradients:
      return fmt::format("the {} of microbatch {} from stage {} to stage {}", name(p.kind),
                         p.microbatch, p.from, p.to);
    case BufferPool::saved:
      return fmt::format("what F of stage {} saved for microbatch {}", p.from, p.microbatch);
    case BufferPool::accumulators:
      return fmt::format("the weight gradients of stage {}", p.from);
  }
  return "";
}

// One rank in issue order, for where two uses may come in another order they are a race.
class BufferChecker {
 public:
  BufferChecker(const Channels& channels, std::size_t number, const RankProgram& rank,
                Diagnostics& out)
      : channels_(channels),
        number_(static_cast<Rank>(number)),
        rank_(rank),
        out_(out),
        held_(rank.slots.size()) {}

  void check() {
    check_layout();
    for (at_ = 0; at_ < rank_.instructions.size(); ++at_) {
      const Instruction& instruction = rank_.instructions[at_];
      if (instruction.kind == InstructionKind::run) check_run(instruction);
      for (const Transfer& transfer : rank_.transfers_of(instruction)) check_transfer(transfer);
    }
  }

 private:
  // No two slots of a pool share a byte.
  void check_layout() {
    std::array<std::vector<std::uint32_t>, kBufferPools> pools;
    for (std::uint32_t slot = 0; slot < rank_.slots.size(); ++slot) {
      if (rank_.slots[slot].size.value == 0) continue;
      pools[static_cast<std::size_t>(rank_.slots[slot].pool)].push_back(slot);
    }
    for (auto& slots : pools) {
      std::ranges::sort(slots, {}, [&](std::uint32_t slot) {
        return std::pair(rank_.slots[slot].offset.value, slot);
      });
      for (std::size_t k = 1; k < slots.size(); ++k) {
        const BufferSlot& before = rank_.slots[slots[k - 1]];
        if (before.offset + before.size <= rank_.slots[slots[k]].offset) continue;
        fault("buffer", Op{},
              fmt::format("slots {} and {} of the {} overlap", slots[k - 1], slots[k],
                          name(before.pool)));
      }
    }
  }

  void check_run(const Instruction& instruction) {
    accesses_ = rank_.accesses_of(instruction);
    needed_ = 0;
    const std::size_t faults = out_.size();
    for (const Op& op : {instruction.op, instruction.paired}) {
      if (uses_buffers(op)) check_op(op);
    }
    if (accesses_.size() == needed_) return;
    out_.resize(faults);
    fault("buffer", instruction.op,
          fmt::format("{} names {} buffers and needs {}", to_string(instruction.op),
                      accesses_.size(), needed_));
  }

  void check_op(const Op& op) {
    const auto use = [&](Channels::Id id, bool is_write) {
      check_next(message(channels_[id].payload(op.microbatch)), is_write, false, op);
    };
    for_each_message(
        channels_, op, [&](Channels::Id id) { use(id, false); },
        [&](Channels::Id id) { use(id, true); });
    // I leaves something for W where W follows.
    const bool writes = !is_backward(op.kind);
    check_next(of_stage(BufferPool::saved, op), writes, !writes, op);
    if (accumulates(op)) check_next(of_stage(BufferPool::accumulators, op), true, false, op);
  }

  // The next access of the run at hand must be this one.
  void check_next(const Value& value, bool is_write, bool either, const Op& op) {
    const std::size_t k = needed_++;
    if (k >= accesses_.size()) return;
    if (is_write != (accesses_[k].is_write != 0) && !either) {
      fault("buffer", op,
            fmt::format("{} {} {}", to_string(op),
                        is_write ? "reads, and should write," : "writes, and should read,",
                        describe(value)));
    }
    check_use(accesses_[k], value, op);
  }

  void check_transfer(const Transfer& transfer) {
    const Op op = op_of(rank_.instructions[at_], transfer);
    if (transfer.slot == kNone) {
      return fault("buffer", op, fmt::format("{} names no buffer", to_string(op)));
    }
    if (rank_.slots[transfer.slot].size < transfer.size) {
      fault("buffer", op,
            fmt::format("{} moves {} B, slot {} has {} B", to_string(op), transfer.size.value,
                        transfer.slot, rank_.slots[transfer.slot].size.value));
    }
    check_use({.slot = transfer.slot,
               .version = transfer.version & 0x7fffffffU,
               .is_write = transfer.is_send ? 0U : 1U},
              message(transfer.payload), op);
  }

  void check_use(const Access& access, const Value& value, const Op& op) {
    const auto version = std::uint32_t{access.version};
    Held& held = held_[access.slot];
    if (rank_.slots[access.slot].pool != value.pool) {
      fault("buffer", op,
            fmt::format("{} keeps {} in slot {}, which is for {}", to_string(op), describe(value),
                        access.slot, name(rank_.slots[access.slot].pool)));
    } else if (held.version + access.is_write != version) {
      fault(
          "version", op,
          fmt::format("{} {} version {} of slot {}, which holds version {} by then", to_string(op),
                      access.is_write ? "makes" : "reads", version, access.slot, held.version));
    } else if (!access.is_write && held.value != value) {
      fault("version", op,
            fmt::format("{} needs {}, slot {} holds {}", to_string(op), describe(value),
                        access.slot, describe(held.value)));
    }
    if (access.is_write) held = {version, value};
  }

  void fault(std::string_view rule, const Op& op, std::string message) {
    out_.push_back({.rule = std::string(rule),
                    .rank = number_,
                    .index = at_,
                    .op = op,
                    .message = std::move(message)});
  }

  const Channels& channels_;
  Rank number_;
  const RankProgram& rank_;
  Diagnostics& out_;
  std::vector<Held> held_;  // [slot]
  // Of the run at hand.
  std::span<const Access> accesses_;
  std::size_t needed_ = 0;
  std::uint32_t at_ = 0;
};

}  // namespace

void buffers(const Problem& problem, const Program& program, Diagnostics& out) {
  const Channels channels(problem);
  by_rank(program, out, [&](std::size_t rank, Diagnostics& found) {
    const RankProgram& list = program.ranks[rank];
    // No buffers have been assigned yet: nothing to say.
    if (list.slots.empty() && list.accesses.empty()) return;
    BufferChecker(channels, rank, list, found).check();
  });
}

}  // namespace counterflow::rules
