#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/graph/channels.h"
#include "scheduler/graph/gradient_sums.h"
#include "scheduler/graph/op_messages.h"
#include "scheduler/graph/sharded_parameters.h"
#include "scheduler/ir/diagnostic_text.h"
#include "scheduler/ir/schedule_file.h"
#include "scheduler/verify/by_rank.h"
#include "scheduler/verify/rules.h"

namespace counterflow::rules {
namespace {

// What a slot holds, or an op means to find there. Of what is saved `payload` names the stage as
// from and to; of a sum of weight gradients the first stage that adds to it, and as microbatch
// which sum it is; part 1 is the sum over all ranks. Of parameters likewise the stage and the unit,
// the part says how much of it is there.
struct Value {
  BufferPool pool = BufferPool::activations;
  Payload payload;
  int step = 0;  // of what is summed up anew in each, and of what STEP keeps
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

constexpr Microbatch kNorm = -1;
constexpr Microbatch kSnapshot = -2;
enum : std::uint16_t { kOfRank = 0, kOfAll = 1 };

Value of_sum(const GradientSums& sums, GradientSums::Id id, std::uint16_t part, int step) {
  const auto stage = static_cast<std::uint16_t>(sums[id].stages.front());
  return {BufferPool::accumulators,
          {.from = stage, .to = stage, .part = part, .microbatch = static_cast<Microbatch>(id)},
          step};
}

// May the second replace the first in its slot? Nothing is added to what is summed over ranks; a
// new step begins anew.
bool same_sum(const Value& held, Value next) {
  if (held.step < next.step) return true;
  if (next.payload.part == kOfAll) next.payload.part = held.payload.part;
  return held == next;
}

Value norm(std::uint16_t part, int step) {
  return {BufferPool::accumulators, {.part = part, .microbatch = kNorm}, step};
}

// The parameters of a copy of a stage before its step.
Value snapshot(const Op& op, int step) {
  return {BufferPool::accumulators,
          {.replica = op.replica, .from = op.stage, .to = op.stage, .microbatch = kSnapshot},
          step};
}

constexpr Microbatch kShard = -1;
// How much of a stage is there.
enum : std::uint16_t { kOwnPart = 0, kWhole = 1, kFreed = 2 };

Value unit_of(Stage stage, Microbatch unit, std::uint16_t part) {
  const auto here = static_cast<std::uint16_t>(stage);
  return {BufferPool::parameters, {.from = here, .to = here, .part = part, .microbatch = unit}};
}
Value shard_of(Stage stage) {
  return unit_of(stage, kShard, kOwnPart);
}

// May this be read where a slot holds that, or written over it? A step changes its shard, a stage
// is gathered where none is, and freed where it is.
bool fits(const Held& held, const Value& next, bool is_write) {
  const Payload& p = next.payload;
  if (!is_write || p.microbatch == kShard) return held.value == next;
  switch (p.part) {
    case kOwnPart:
      return held.version == 0 ? held.value == Value{} : held.value.payload.part == kFreed;
    case kWhole:
      return held.value == unit_of(p.from, p.microbatch, kOwnPart);
    default:
      return held.value == unit_of(p.from, p.microbatch, kWhole);
  }
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
      if (p.microbatch == kSnapshot) {
        return fmt::format("the parameters of stage {} before step {}", p.from, value.step);
      }
      return (p.microbatch == kNorm ? "the norm of the gradients"
                                    : fmt::format("the weight gradients of stage {}", p.from)) +
             (p.part == kOfAll ? ", summed over ranks" : "") +
             (value.step > 0 ? fmt::format(", of step {}", value.step) : "");
    case BufferPool::parameters:
      if (p.microbatch == kShard) return fmt::format("the shard of stage {}", p.from);
      return fmt::format("the parameters of stage {}{}", p.from,
                         p.part == kWhole   ? ""
                         : p.part == kFreed ? ", resharded"
                                            : ", of which this rank's shard alone is there");
  }
  return "";
}

// One rank in issue order, for where two uses may come in another order they are a race.
class BufferChecker {
 public:
  BufferChecker(const Problem& problem, const Channels& channels, const GradientSums& sums,
                const ShardedParameters& parameters, std::size_t number, const RankProgram& rank,
                Diagnostics& out)
      : problem_(problem),
        channels_(channels),
        sums_(sums),
        parameters_(parameters),
        number_(static_cast<Rank>(number)),
        rank_(rank),
        out_(out),
        held_(rank.slots.size()) {}

  void check() {
    check_layout();
    hold_shards();
    for (at_ = 0; at_ < rank_.instructions.size(); ++at_) {
      const Instruction& instruction = rank_.instructions[at_];
      if (instruction.kind == InstructionKind::run) check_run(instruction);
      for (const Transfer& transfer : rank_.transfers_of(instruction)) check_transfer(transfer);
      for (const Collective& collective : rank_.collectives_of(instruction)) {
        check_collective(collective);
      }
    }
  }

 private:
  // What the step before left: in the slot that the first UNSHARD of each stage reads.
  void hold_shards() {
    std::set<Stage> seen;
    for (const Instruction& instruction : rank_.instructions) {
      const Op& op = instruction.op;
      const auto accesses = rank_.accesses_of(instruction);
      if (op.kind != OpKind::unshard || accesses.empty() || !seen.insert(op.stage).second) continue;
      Held& held = held_[accesses.front().slot];
      if (held.value == Value{}) held.value = shard_of(op.stage);
    }
  }

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
    // Without an optimizer, as a file may have them, they touch nothing of ours.
    if (problem_.optimizer) {
      check_optimizer(instruction.op);
      if (instruction.op.kind == OpKind::unshard) check_unshard(instruction.op);
      if (instruction.op.kind == OpKind::reshard) check_units(instruction.op, kFreed, true);
    }
    if (accesses_.size() == needed_) return;
    out_.resize(faults);
    fault("buffer", instruction.op,
          fmt::format("{} names {} buffers and needs {}", to_string(instruction.op),
                      accesses_.size(), needed_));
  }

  void check_units(const Op& op, std::uint16_t part, bool is_write) {
    const auto count = static_cast<Microbatch>(parameters_.units(op.stage).size());
    for (Microbatch unit = 0; unit < count; ++unit) {
      check_next(unit_of(op.stage, unit, part), is_write, false, op);
    }
  }

  void check_unshard(const Op& op) {
    if (parameters_.units(op.stage).empty()) return;
    check_next(shard_of(op.stage), false, false, op);
    check_units(op, kOwnPart, true);
  }

  void check_op(const Op& op) {
    if (reads_parameters(op)) check_units(op, kWhole, false);
    const auto use = [&](Channels::Id id, bool is_write) {
      check_next(message(channels_[id].payload(op.microbatch)), is_write, false, op);
    };
    for_each_message(
        channels_, op, [&](Channels::Id id) { use(id, false); },
        [&](Channels::Id id) { use(id, true); });
    // I leaves something for W where W follows.
    const bool writes = !is_backward(op.kind);
    check_next(of_stage(BufferPool::saved, op), writes, !writes, op);
    if (!accumulates(op)) return;
    for (const GradientSums::Id id : sums_.of(op.stage)) {
      check_next(of_sum(sums_, id, kOfRank, problem_.step_of(op.microbatch)), true, false, op);
    }
  }

  // A sum as the optimizer needs it: over all who have a share.
  [[nodiscard]] Value complete(GradientSums::Id id, int step) const {
    return of_sum(sums_, id, sums_[id].is_shared() ? kOfAll : kOfRank, step);
  }
  [[nodiscard]] Value complete_norm(int step) const {
    return norm(problem_.ranks() > 1 ? kOfAll : kOfRank, step);
  }

  // The k-th of each is that of step k. One too many is another rule's business.
  void check_optimizer(const Op& op) {
    const bool validates = problem_.optimizer->validates();
    if (has_microbatch(op.kind)) return;
    const int step = std::min(times_run_[op]++, problem_.steps - 1);
    if (op.kind == OpKind::gradient_norm) {
      check_norm(op, step);
    } else if (op.kind == OpKind::optimizer_step) {
      check_step(op, step);
    } else if (op.kind == OpKind::validate_step && validates) {
      check_validation(op, step);
    }
  }

  void check_norm(const Op& op, int step) {
    for (const GradientSums::Id id : sums_.on(problem_, number_)) {
      check_next(complete(id, step), false, false, op);
    }
    check_next(norm(kOfRank, step), true, false, op);
  }

  void check_sums(const Op& op, int step) {
    for (const GradientSums::Id id : sums_.of(op.stage)) {
      check_next(complete(id, step), false, false, op);
    }
  }

  void check_step(const Op& op, int step) {
    check_sums(op, step);
    if (problem_.optimizer->validates()) {
      check_next(snapshot(op, step), true, false, op);
    } else if (problem_.optimizer->global_norm) {
      check_next(complete_norm(step), false, false, op);
    }
    if (!parameters_.units(op.stage).empty()) check_next(shard_of(op.stage), true, false, op);
  }

  void check_validation(const Op& op, int step) {
    check_sums(op, step);
    check_next(complete_norm(step), false, false, op);
    check_next(snapshot(op, step), false, false, op);
  }

  // In place: the same value, now of all members. Which ranks those are is for rule `reduction`.
  void check_collective(const Collective& collective) {
    if (collective.slot == kNone) return;
    const Op op = rank_.instructions[at_].op;
    Value value = held_[collective.slot].value;
    if (value.pool == BufferPool::parameters) {
      if (value.payload.part != kOwnPart || value.payload.microbatch == kShard) {
        fault("version", op, fmt::format("gathers {}", describe(value)));
      }
      value.payload.part = kWhole;
    } else {
      if (value.payload.part == kOfAll) {
        fault("version", op, fmt::format("adds up {} once more", describe(value)));
      }
      value.payload.part = kOfAll;
    }
    if (rank_.slots[collective.slot].size < collective.size) {
      fault("buffer", op,
            fmt::format("a collective of {} B works on slot {}, which has {} B",
                        collective.size.value, collective.slot,
                        rank_.slots[collective.slot].size.value));
    }
    check_use({.slot = collective.slot, .version = collective.version & 0x7fffffffU, .is_write = 1},
              value, op);
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
    check_size(transfer, op);
    check_use({.slot = transfer.slot,
               .version = transfer.version & 0x7fffffffU,
               .is_write = transfer.is_send ? 0U : 1U},
              message(transfer.payload), op);
  }

  void check_size(const Transfer& transfer, const Op& op) {
    const Bytes room = rank_.slots[transfer.slot].size;
    const Bytes in_memory = unpacked_size(transfer.type, transfer.size);
    if (packed_size(transfer.type, in_memory) != transfer.size) {
      fault("buffer", op,
            fmt::format("{} moves {} B of {}, which no number of elements packs to", to_string(op),
                        transfer.size.value, name(transfer.type)));
    } else if (room < in_memory) {
      fault("buffer", op,
            fmt::format("{} moves {} B, slot {} has {} B", to_string(op), in_memory.value,
                        transfer.slot, room.value));
    }
  }

  void check_use(const Access& access, const Value& value, const Op& op) {
    const auto version = std::uint32_t{access.version};
    Held& held = held_[access.slot];
    if (rank_.slots[access.slot].pool != value.pool) {
      fault("buffer", op,
            fmt::format("{} keeps {} in slot {}, which is for {}", to_string(op), describe(value),
                        access.slot, name(rank_.slots[access.slot].pool)));
    } else if (value.pool == BufferPool::parameters && !fits(held, value, access.is_write != 0)) {
      fault("version", op,
            fmt::format("{} {} {}, slot {} holds {}", to_string(op),
                        access.is_write ? "makes" : "needs", describe(value), access.slot,
                        held.value == Value{} ? "nothing" : describe(held.value)));
    } else if (held.version + access.is_write != version) {
      fault(
          "version", op,
          fmt::format("{} {} version {} of slot {}, which holds version {} by then", to_string(op),
                      access.is_write ? "makes" : "reads", version, access.slot, held.version));
    } else if (value.pool == BufferPool::accumulators && access.is_write && held.version > 0 &&
               !same_sum(held.value, value)) {
      fault("version", op,
            fmt::format("{} adds to {}, slot {} holds {}", to_string(op), describe(value),
                        access.slot, describe(held.value)));
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

  const Problem& problem_;
  const Channels& channels_;
  const GradientSums& sums_;
  const ShardedParameters& parameters_;
  Rank number_;
  const RankProgram& rank_;
  Diagnostics& out_;
  std::vector<Held> held_;       // [slot]
  std::map<Op, int> times_run_;  // of each NORM, STEP and VALIDATE, so far
  // Of the run at hand.
  std::span<const Access> accesses_;
  std::size_t needed_ = 0;
  std::uint32_t at_ = 0;
};

}  // namespace

void buffers(const Problem& problem, const Program& program, Diagnostics& out) {
  const Channels channels(problem);
  const GradientSums sums(problem);
  const ShardedParameters parameters(problem, sums);
  by_rank(program, out, [&](std::size_t rank, Diagnostics& found) {
    const RankProgram& list = program.ranks[rank];
    // No buffers have been assigned yet: nothing to say.
    if (list.slots.empty() && list.accesses.empty()) return;
    BufferChecker(problem, channels, sums, parameters, rank, list, found).check();
  });
}

}  // namespace counterflow::rules
