#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "scheduler/graph/channels.h"
#include "scheduler/graph/evaluate.h"
#include "scheduler/graph/gradient_sums.h"
#include "scheduler/graph/op_messages.h"
#include "scheduler/passes/compute_of.h"
#include "scheduler/passes/passes.h"
#include "scheduler/passes/slot_allocator.h"

namespace counterflow {
namespace {

// A value of one rank while it is alive.
struct Value {
  std::uint32_t slot = kNone;
  std::uint32_t version = 0;
  std::uint32_t readers_left = 0;
};

// Everything ops and transfers use, by what it means. A message that crosses ranks is a value on
// either side.
class Values {
 public:
  Values(const Problem& problem, const Channels& channels)
      : microbatches_(static_cast<std::size_t>(problem.microbatches)),
        stages_(static_cast<std::size_t>(problem.stages())),
        channels_(channels) {
    const auto chunks = static_cast<std::size_t>(problem.placement.replicas()) * stages_;
    made_.resize(channels.size() * microbatches_);
    received_.resize(channels.size() * microbatches_);
    saved_.resize(chunks * microbatches_);
  }

  // A message where it is made, where it arrives, and where the op that needs it finds it.
  [[nodiscard]] Value& made(Channels::Id id, Microbatch microbatch) {
    return made_[at(id, microbatch)];
  }
  [[nodiscard]] Value& received(Channels::Id id, Microbatch microbatch) {
    return received_[at(id, microbatch)];
  }
  [[nodiscard]] Value& input(Channels::Id id, Microbatch microbatch) {
    return channels_[id].crosses_ranks() ? received(id, microbatch) : made(id, microbatch);
  }
  [[nodiscard]] Value& saved(const Op& op) { return saved_[at(chunk(op), op.microbatch)]; }

 private:
  [[nodiscard]] std::size_t chunk(const Op& op) const { return op.replica * stages_ + op.stage; }
  [[nodiscard]] std::size_t at(std::size_t row, Microbatch microbatch) const {
    return row * microbatches_ + static_cast<std::size_t>(microbatch);
  }

  std::size_t microbatches_, stages_;
  const Channels& channels_;
  std::vector<Value> made_, received_;  // [channel][microbatch]
  std::vector<Value> saved_;            // [replica][stage][microbatch]
};

// When each run of the schedule begins, and each message is made and needed, if every op goes as
// early as it can.
class Timing {
 public:
  Timing(const Problem& problem, const Channels& channels, const Program& program)
      : links_(problem.links),
        channels_(channels),
        microbatches_(static_cast<std::size_t>(problem.microbatches)) {
    const Schedule schedule = compute_of(program);
    Evaluator evaluator(problem);
    evaluation_ = evaluator.evaluate(schedule);
    if (!evaluation_.complete) return;
    made_.resize(channels.size() * microbatches_);
    needed_.resize(channels.size() * microbatches_);
    for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
      for (std::size_t k = 0; k < schedule.ranks[rank].size(); ++k) {
        note(schedule.ranks[rank][k], evaluation_.begins[rank][k],
             problem.duration(schedule.ranks[rank][k]));
      }
    }
  }

  [[nodiscard]] bool known() const { return evaluation_.complete; }
  [[nodiscard]] Time begin(std::size_t rank, std::size_t run) const {
    return known() ? evaluation_.begins[rank][run] : Time{0};
  }
  // When a receive may have to be posted, at the earliest.
  [[nodiscard]] Time made(Channels::Id id, Microbatch microbatch) const {
    return known() ? made_[at(id, microbatch)] : Time{0};
  }
  // When a send has surely ended.
  [[nodiscard]] Time sent(Channels::Id id, Microbatch microbatch) const {
    if (!known()) return Time{0};
    if (!links_.only_latency()) return needed_[at(id, microbatch)];
    return made_[at(id, microbatch)] +
           links_.latency(channels_[id].source, channels_[id].destination);
  }

 private:
  [[nodiscard]] std::size_t at(Channels::Id id, Microbatch microbatch) const {
    return id * microbatches_ + static_cast<std::size_t>(microbatch);
  }
  void note(const Slot& slot, Time begin, Time duration) {
    for (const Op& op : {slot.first, slot.second}) {
      if (op.kind == OpKind::none) continue;
      for (const Channels::Id id : channels_.inputs(op)) needed_[at(id, op.microbatch)] = begin;
      for (const Channels::Id id : channels_.outputs(op)) {
        made_[at(id, op.microbatch)] = begin + duration;
      }
    }
  }

  const Links& links_;
  const Channels& channels_;
  std::size_t microbatches_;
  Evaluation evaluation_;
  std::vector<Time> made_, needed_;  // [channel][microbatch]
};

// Walks one rank's list, giving out slots at first use and taking them back at the last.
class RankBuffers {
 public:
  RankBuffers(const Problem& problem, const Channels& channels, const GradientSums& sums,
              const Timing& timing, Values& values, Program& program, std::size_t rank, bool reuse)
      : problem_(problem),
        channels_(channels),
        sums_(sums),
        timing_(timing),
        values_(values),
        of_sums_(sums.size()),
        program_(program),
        rank_(program.ranks[rank]),
        number_(rank),
        slots_(reuse && timing.known()) {}

  void assign() {
    count_readers();
    std::vector<EventWait> waits;
    waits.reserve(rank_.waits.size() + rank_.transfers.size());
    std::size_t position = 0;
    for (index_ = 0; index_ < rank_.instructions.size(); ++index_) {
      Instruction& instruction = rank_.instructions[index_];
      reused_.clear();
      if (instruction.kind == InstructionKind::run) {
        // Others, such as UNSHARD, are not timed.
        if (uses_buffers(instruction.op)) run(instruction, position++);
      } else if (instruction.kind == InstructionKind::transfer) {
        transfer(instruction);
      }
      copy_waits(instruction, waits);
    }
    rank_.waits = std::move(waits);
    rank_.slots = std::move(slots_).finish();
  }

 private:
  // Also finds how many accesses there will be, so that large programs do not pay for growth.
  void count_readers() {
    std::size_t accesses = 0;
    for (const Instruction& instruction : rank_.instructions) {
      if (instruction.kind == InstructionKind::run) {
        for (const Op& op : {instruction.op, instruction.paired}) accesses += count_readers(op);
      }
      for (const Transfer& t : rank_.transfers_of(instruction)) {
        const auto id = channels_.find(t.payload);
        if (t.is_send && id) ++values_.made(*id, t.payload.microbatch).readers_left;
      }
    }
    rank_.accesses.reserve(accesses);
  }

  std::size_t count_readers(const Op& op) {
    if (!uses_buffers(op)) return 0;
    std::size_t accesses = 1;  // what F saves
    for_each_message(
        channels_, op,
        [&](Channels::Id id) {
          ++accesses;
          ++values_.input(id, op.microbatch).readers_left;
        },
        [&](Channels::Id) { ++accesses; });
    if (is_backward(op.kind)) ++values_.saved(op).readers_left;
    return accesses + (accumulates(op) ? sums_.of(op.stage).size() : 0);
  }

  void run(Instruction& instruction, std::size_t position) {
    const Time begin = timing_.begin(number_, position);
    const Time end = begin + program_.kernels[instruction.kernel].duration;
    instruction.body.first = static_cast<std::uint32_t>(rank_.accesses.size());
    for (const Op& op : {instruction.op, instruction.paired}) {
      if (uses_buffers(op)) compute(op, begin, end);
    }
    instruction.body.count =
        static_cast<std::uint32_t>(rank_.accesses.size()) - instruction.body.first;
  }

  void compute(const Op& op, Time begin, Time end) {
    for_each_message(
        channels_, op, [&](Channels::Id id) { read(values_.input(id, op.microbatch), end); },
        [&](Channels::Id id) {
          const Channels::Channel& channel = channels_[id];
          define(values_.made(id, op.microbatch), pool_of(channel.kind), channel.size, begin);
        });
    Value& saved = values_.saved(op);
    if (op.kind == OpKind::forward) {
      define(saved, BufferPool::saved, problem_.memory[op.stage].activation, begin);
      if (saved.readers_left == 0) slots_.give_back(saved.slot, end, index_);
    } else if (restores_or_stores(op.kind)) {
      if (saved.slot == kNone) return;  // F comes later: verify() objects
      saved.version = slots_.write(saved.slot);
      access(saved, true);
    } else if (op.kind == OpKind::backward_input && saved.slot != kNone) {
      if (saved.readers_left > 1) saved.version = slots_.write(saved.slot);
      access(saved, saved.readers_left > 1);
      release(saved, end);
    } else {
      read(saved, end);
    }
    if (!accumulates(op)) return;
    for (const GradientSums::Id id : sums_.of(op.stage)) accumulate(id);
  }

  void accumulate(GradientSums::Id id) {
    Value& sum = of_sums_[id];
    if (sum.slot == kNone) {
      define(sum, BufferPool::accumulators, sums_[id].size, Time{0});
    } else {
      sum.version = slots_.write(sum.slot);
      access(sum, true);
    }
  }

  void transfer(const Instruction& instruction) {
    for (std::uint32_t k = 0; k < instruction.body.count; ++k) {
      Transfer& t = rank_.transfers[instruction.body.first + k];
      const auto id = channels_.find(t.payload);
      if (!id) continue;
      const Microbatch microbatch = t.payload.microbatch;
      Value& value = t.is_send ? values_.made(*id, microbatch) : values_.received(*id, microbatch);
      if (t.is_send) {
        if (value.slot == kNone) continue;  // nothing made it: verify() objects
        t.slot = value.slot;
        t.version = value.version;
        release(value, timing_.sent(*id, microbatch));
      } else {
        take(value, pool_of(t.payload.kind), t.size, timing_.made(*id, microbatch));
        t.slot = value.slot;
        t.version = value.version;
      }
    }
  }

  void define(Value& value, BufferPool pool, Bytes size, Time at) {
    take(value, pool, size, at);
    access(value, true);
  }

  void take(Value& value, BufferPool pool, Bytes size, Time at) {
    const SlotAllocator::Taken taken = slots_.take(pool, size, at);
    value.slot = taken.slot;
    value.version = taken.version;
    if (taken.last_user != kNone) reused_.push_back(taken.last_user);
  }

  void read(Value& value, Time end) {
    if (value.slot == kNone) return;  // nothing brought it: verify() objects
    access(value, false);
    release(value, end);
  }

  void access(const Value& value, bool write) {
    rank_.accesses.push_back({.slot = value.slot,
                              .version = value.version & 0x7fffffffU,
                              .is_write = static_cast<std::uint32_t>(write) & 1U});
  }

  void release(Value& value, Time at) {
    if (--value.readers_left == 0) slots_.give_back(value.slot, at, index_);
  }

  void copy_waits(Instruction& instruction, std::vector<EventWait>& waits) {
    const auto old = rank_.waits_of(instruction);
    const auto first = static_cast<std::uint32_t>(waits.size());
    waits.insert(waits.end(), old.begin(), old.end());
    for (const std::uint32_t user : reused_) {
      Instruction& before = rank_.instructions[user];
      if (before.kind == InstructionKind::run && before.stream == instruction.stream) continue;
      if (before.records == kNone) before.records = rank_.events++;
      waits.push_back({.event = before.records, .generation = before.generation});
    }
    instruction.waits = {first, static_cast<std::uint32_t>(waits.size()) - first};
  }

  static BufferPool pool_of(PayloadKind kind) {
    return kind == PayloadKind::gradient ? BufferPool::gradients : BufferPool::activations;
  }

  const Problem& problem_;
  const Channels& channels_;
  const GradientSums& sums_;
  const Timing& timing_;
  Values& values_;
  std::vector<Value> of_sums_;  // [sum] on this rank
  Program& program_;
  RankProgram& rank_;
  std::size_t number_;
  SlotAllocator slots_;
  std::uint32_t index_ = 0;
  std::vector<std::uint32_t> reused_;  // last users of the slots this instruction takes over
};

Program with_buffers(const Problem& problem, Program program, bool reuse) {
  const Channels channels(problem);
  const GradientSums sums(problem);
  const Timing timing(problem, channels, program);
  Values values(problem, channels);
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) {
    RankBuffers(problem, channels, sums, timing, values, program, rank, reuse).assign();
  }
  return program;
}

}  // namespace

Program assign_buffers(const Problem& problem, Program program) {
  return with_buffers(problem, std::move(program), true);
}

Program assign_own_buffers(const Problem& problem, Program program) {
  return with_buffers(problem, std::move(program), false);
}

}  // namespace counterflow
