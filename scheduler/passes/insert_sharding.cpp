#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/error.h"
#include "scheduler/graph/collective_groups.h"
#include "scheduler/graph/gradient_sums.h"
#include "scheduler/graph/op_messages.h"
#include "scheduler/graph/recordings.h"
#include "scheduler/graph/sharded_parameters.h"
#include "scheduler/passes/communicators.h"
#include "scheduler/passes/passes.h"
#include "scheduler/passes/reduction_order.h"
#include "scheduler/passes/slot_allocator.h"
#include "scheduler/passes/unsharded_stays.h"

// Gathers take their place in the global sequence that insert_transfers makes: each once, at a time
// that all its ranks agree on, after transfers and reductions of that time and before computes. So
// every rank's list is still part of one sequence, and what insert_transfers proves holds. Whatever
// they wait for, a compute before or a RESHARD whose slot they take over, stands before them in it.
namespace counterflow {
namespace {

// Where something stands in the global sequence.
enum class PlaceKind : std::uint8_t { transfer, reduction, gather, compute };
using Place = std::pair<Time, PlaceKind>;

// When the last member of each collective is ready; those that wait for more than the schedule's
// own computes come after everything. [rank][collective]
std::vector<std::vector<Time>> ready_times(const Program& program, const RunTimes& times) {
  std::vector<std::vector<Time>> ends;  // [rank][instruction]
  std::vector<Recordings> recordings;
  std::vector<std::vector<Time>> ready;
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) {
    const RankProgram& list = program.ranks[rank];
    auto& own = ends.emplace_back(list.instructions.size(), Time::max());
    std::size_t position = 0;
    for (std::size_t k = 0; k < own.size(); ++k) {
      const Instruction& i = list.instructions[k];
      if (i.kind != InstructionKind::run || !uses_buffers(i.op)) continue;
      own[k] = times.end(rank, position++, program.kernels[i.kernel]);
    }
    recordings.emplace_back(list);
    ready.emplace_back(list.collectives.size());
  }
  for (const CollectiveGroup& group : collective_groups(program)) {
    Time latest{0};
    for (const auto& [rank, k] : group.members) {
      const RankProgram& list = program.ranks[rank];
      for (const EventWait& wait : list.waits_of(list.instructions[k])) {
        latest = std::max(latest, ends[rank][recordings[rank].recorder(wait)]);
      }
    }
    for (const auto& [rank, k] : group.members) {
      ready[rank][program.ranks[rank].instructions[k].body.first] = latest;
    }
  }
  return ready;
}

// What all ranks share.
struct Plan {
  Plan(const Problem& problem, const Program& program)
      : sums(problem),
        parameters(problem, sums),
        times(problem, program),
        ready(ready_times(program, times)),
        stays(unsharded_stays(problem, program, times, parameters)) {}

  const GradientSums sums;
  const ShardedParameters parameters;
  const RunTimes times;
  const std::vector<std::vector<Time>> ready;  // [rank][collective]
  const std::vector<UnshardedStay> stays;
};

// Where a value is, and which instruction brings it.
struct Held {
  std::uint32_t slot = kNone;
  std::uint32_t version = 0;
  std::uint32_t instruction = kNone;
};

Access read_of(const Held& held) {
  return {.slot = held.slot, .version = held.version & 0x7fffffffU, .is_write = 0};
}
Access write_of(std::uint32_t slot, std::uint32_t version) {
  return {.slot = slot, .version = version & 0x7fffffffU, .is_write = 1};
}

class RankSharding {
 public:
  RankSharding(const Problem& problem, const Plan& plan, Communicators& communicators,
               Program& program, std::size_t rank)
      : problem_(problem),
        plan_(plan),
        communicators_(communicators),
        program_(program),
        rank_(program.ranks[rank]),
        number_(static_cast<Rank>(rank)),
        first_slot_(static_cast<std::uint32_t>(rank_.slots.size())),
        steps_left_(plan.sums.size()) {}

  void insert() {
    add_shards();
    if (shards_.empty()) return;
    for (const UnshardedStay& stay : plan_.stays) {
      if (shards_.contains(stay.stage)) stays_.push_back(&stay);
    }
    old_ = std::move(rank_);
    rank_ = {.streams = std::move(old_.streams),
             .instructions = {},
             .waits = {},
             .transfers = std::move(old_.transfers),
             .collectives = std::move(old_.collectives),
             .accesses = {},
             .slots = std::move(old_.slots),
             .events = old_.events,
             .static_memory = old_.static_memory};
    for (const Instruction& instruction : old_.instructions) {
      gather_before(instruction);
      append(instruction);
    }
    while (next_ < stays_.size()) unshard(*stays_[next_++]);
    for (BufferSlot& slot : std::move(slots_).finish()) rank_.slots.push_back(slot);
  }

 private:
  // ---- What is there ------------------------------------------------------------------------

  void add_shards() {
    for (const Chunk& chunk : problem_.placement.chunks_of(number_)) {
      if (plan_.parameters.units(chunk.stage).empty()) continue;
      const Bytes size = plan_.parameters.shard(chunk.stage, number_);
      const std::uint32_t slot = slots_.take(BufferPool::parameters, size, Time{0}).slot;
      shards_[chunk.stage] = {first_slot_ + slot, 0, kNone};
      replicas_[chunk.stage] = chunk.replica;
    }
    // Each sum is held whole until the last step that reads it.
    for (const Chunk& chunk : problem_.placement.chunks_of(number_)) {
      for (const GradientSums::Id id : plan_.sums.of(chunk.stage)) ++steps_left_[id];
    }
  }

  // None for those that take no part in the sequence: norms and steps.
  [[nodiscard]] std::optional<Place> place_of(const Instruction& instruction) const {
    if (instruction.kind == InstructionKind::transfer) {
      const Transfer& first = rank_.transfers[instruction.body.first];
      return Place{plan_.times.made(first.payload), PlaceKind::transfer};
    }
    const auto rank = static_cast<std::size_t>(number_);
    if (instruction.kind == InstructionKind::collective) {
      return Place{plan_.ready[rank][instruction.body.first], PlaceKind::reduction};
    }
    if (instruction.kind != InstructionKind::run || !uses_buffers(instruction.op)) return {};
    return Place{plan_.times.begin(rank, runs_), PlaceKind::compute};
  }

  void gather_before(const Instruction& instruction) {
    const std::optional<Place> place = place_of(instruction);
    if (place) {
      while (next_ < stays_.size() && Place{stays_[next_]->at, PlaceKind::gather} < *place) {
        unshard(*stays_[next_++]);
      }
    } else if (instruction.op.kind == OpKind::optimizer_step) {
      // A rank may have to take part for others when it has no use itself: with the shard of
      // before.
      const auto left = std::span(stays_).subspan(next_);
      const auto last = std::find_if(left.rbegin(), left.rend(), [&](const UnshardedStay* stay) {
        return stay->stage == instruction.op.stage;
      });
      for (auto count = left.rend() - last; count > 0; --count) unshard(*stays_[next_++]);
    }
  }

  // ---- The instructions there were ------------------------------------------------------------

  void append(Instruction instruction) {
    const auto old = old_.waits_of(instruction);
    std::vector<EventWait> waits(old.begin(), old.end());
    if (instruction.kind == InstructionKind::run) {
      const auto accesses = old_.accesses_of(instruction);
      instruction.body.first = static_cast<std::uint32_t>(rank_.accesses.size());
      if (instruction.op.kind == OpKind::optimizer_step) {
        step(instruction, accesses, waits);
      } else {
        compute(instruction, accesses, waits);
      }
      instruction.body.count =
          static_cast<std::uint32_t>(rank_.accesses.size()) - instruction.body.first;
    }
    push(instruction, waits);
    if (instruction.kind != InstructionKind::run || !uses_buffers(instruction.op)) return;
    last_compute_ = last_index();
    reshard_after(runs_++);
  }

  void compute(Instruction& instruction, std::span<const Access> accesses,
               std::vector<EventWait>& waits) {
    // The first of a pair ends with what it saves.
    std::size_t split = accesses.size();
    if (instruction.paired.kind != OpKind::none) {
      const auto saves = std::ranges::find_if(accesses, [&](const Access& access) {
        return rank_.slots[access.slot].pool == BufferPool::saved;
      });
      split = static_cast<std::size_t>(saves - accesses.begin()) + 1;
    }
    read_parameters(instruction.op, waits);
    copy(accesses.first(split));
    read_parameters(instruction.paired, waits);
    copy(accesses.subspan(split));
    Bytes gradients;
    for (const Op& op : {instruction.op, instruction.paired}) {
      if (!accumulates(op)) continue;
      for (const GradientSums::Id id : plan_.sums.of(op.stage)) {
        if (added_.insert(id).second) gradients += plan_.sums[id].size;
      }
    }
    if (gradients.value == 0) return;
    Kernel first = program_.kernels[instruction.kernel];
    first.allocates += gradients;
    instruction.kernel = add(first);
  }

  void read_parameters(const Op& op, std::vector<EventWait>& waits) {
    if (!reads_parameters(op)) return;
    for (const Held& unit : units_[op.stage]) {
      rank_.accesses.push_back(read_of(unit));
      wait_for(unit.instruction, waits);
    }
  }

  // Of its own kernel.
  void step(const Instruction& instruction, std::span<const Access> accesses,
            std::vector<EventWait>& waits) {
    copy(accesses);
    const Stage stage = instruction.op.stage;
    for (const GradientSums::Id id : plan_.sums.of(stage)) {
      if (--steps_left_[id] == 0) {
        program_.kernels[instruction.kernel].frees += plan_.sums[id].size;
      }
    }
    const auto shard = shards_.find(stage);
    if (shard == shards_.end()) return;
    rank_.accesses.push_back(write_of(shard->second.slot, ++shard->second.version));
    // The last that has read it: gathers of a stream follow each other.
    if (shard->second.instruction != kNone) wait_for(shard->second.instruction, waits);
  }

  void copy(std::span<const Access> accesses) {
    rank_.accesses.insert(rank_.accesses.end(), accesses.begin(), accesses.end());
  }

  // ---- What is added --------------------------------------------------------------------------

  void unshard(const UnshardedStay& stay) {
    Held& shard = shards_[stay.stage];
    std::vector<Held>& units = units_[stay.stage];
    units.clear();
    Instruction copy_in = whole_stage(OpKind::unshard, stay.stage, stream());
    std::vector<EventWait> waits;
    if (last_compute_ != kNone) wait_for(last_compute_, waits);
    copy_in.body.first = static_cast<std::uint32_t>(rank_.accesses.size());
    rank_.accesses.push_back(read_of(shard));
    for (const Bytes size : plan_.parameters.units(stay.stage)) {
      const auto taken = slots_.take(BufferPool::parameters, size, stay.at);
      units.push_back({first_slot_ + taken.slot, taken.version, kNone});
      rank_.accesses.push_back(write_of(units.back().slot, taken.version));
      if (taken.last_user != kNone) wait_for(taken.last_user, waits);
    }
    copy_in.body.count = static_cast<std::uint32_t>(rank_.accesses.size()) - copy_in.body.first;
    push(copy_in, waits);
    shard.instruction = last_index();
    for (std::size_t k = 0; k < units.size(); ++k) gather(stay.stage, k, shard.instruction);
    const auto last = stay.last[plan_.parameters.number(stay.stage, number_)];
    if (last.run == UnshardedStay::kNoUse) {
      reshard(stay.stage, last.end, stream());
    } else {
      last_uses_.emplace(last.run, &stay);
    }
  }

  // Unit k has number k + 1: number 0 is the copy to its place.
  void gather(Stage stage, std::size_t k, std::uint32_t copy_in) {
    Held& unit = units_[stage][k];
    unit.version = slots_.write(unit.slot - first_slot_);
    const CommunicatorId communicator =
        communicators_.of(CommunicatorKind::data_parallel, plan_.parameters.holders(stage));
    Instruction instruction{.kind = InstructionKind::collective,
                            .stream = stream(),
                            .communicator = communicator,
                            .op = op_of(OpKind::unshard, stage)};
    instruction.op.microbatch = static_cast<Microbatch>(k + 1);
    instruction.body = {static_cast<std::uint32_t>(rank_.collectives.size()), 1};
    rank_.collectives.push_back({.kind = CollectiveKind::all_gather,
                                 .sequence = called_[communicator]++,
                                 .slot = unit.slot,
                                 .version = unit.version,
                                 .size = plan_.parameters.units(stage)[k]});
    std::vector<EventWait> waits;
    wait_for(copy_in, waits);
    push(instruction, waits);
    unit.instruction = last_index();
  }

  void reshard_after(std::uint32_t run) {
    const auto [begin, end] = last_uses_.equal_range(run);
    for (auto use = begin; use != end; ++use) {
      const UnshardedStay& stay = *use->second;
      reshard(stay.stage, stay.last[plan_.parameters.number(stay.stage, number_)].end,
              rank_.instructions[last_compute_].stream);
    }
    last_uses_.erase(begin, end);
  }

  // On the stream of the last use it follows that.
  void reshard(Stage stage, Time end, StreamId stream) {
    Instruction instruction = whole_stage(OpKind::reshard, stage, stream);
    std::vector<EventWait> waits;
    instruction.body.first = static_cast<std::uint32_t>(rank_.accesses.size());
    const auto index = static_cast<std::uint32_t>(rank_.instructions.size());
    for (const Held& unit : units_[stage]) {
      const std::uint32_t own = unit.slot - first_slot_;
      rank_.accesses.push_back(write_of(unit.slot, slots_.write(own)));
      wait_for(unit.instruction, waits);
      slots_.give_back(own, end, index);
    }
    instruction.body.count =
        static_cast<std::uint32_t>(rank_.accesses.size()) - instruction.body.first;
    push(instruction, waits);
    units_[stage].clear();
  }

  // ---- Pieces -----------------------------------------------------------------------------------

  [[nodiscard]] Op op_of(OpKind kind, Stage stage) const {
    return {kind, replicas_.at(stage), static_cast<std::uint16_t>(stage), 0};
  }

  // UNSHARD allocates what RESHARD frees.
  [[nodiscard]] Instruction whole_stage(OpKind kind, Stage stage, StreamId stream) {
    const Op op = op_of(kind, stage);
    const auto [known, is_new] = kernels_.try_emplace(op, 0);
    if (is_new) {
      Kernel kernel{.kind = kind, .replica = op.replica, .stage = op.stage};
      (kind == OpKind::unshard ? kernel.allocates : kernel.frees) = plan_.parameters.size(stage);
      known->second = add(kernel);
    }
    return {.kind = InstructionKind::run, .stream = stream, .kernel = known->second, .op = op};
  }

  std::uint32_t add(const Kernel& kernel) {
    program_.kernels.push_back(kernel);
    return static_cast<std::uint32_t>(program_.kernels.size() - 1);
  }

  void wait_for(std::uint32_t index, std::vector<EventWait>& waits) {
    Instruction& recorder = rank_.instructions[index];
    if (recorder.records == kNone) recorder.records = rank_.events++;
    waits.push_back({.event = recorder.records, .generation = recorder.generation});
  }

  void push(Instruction instruction, const std::vector<EventWait>& waits) {
    instruction.waits = {static_cast<std::uint32_t>(rank_.waits.size()),
                         static_cast<std::uint32_t>(waits.size())};
    rank_.waits.insert(rank_.waits.end(), waits.begin(), waits.end());
    rank_.instructions.push_back(instruction);
  }
  [[nodiscard]] std::uint32_t last_index() const {
    return static_cast<std::uint32_t>(rank_.instructions.size() - 1);
  }

  // Of its own, so that reductions hold no gather up.
  StreamId stream() {
    if (!stream_) {
      if (rank_.streams.size() == kMaxStreams) {
        throw InfeasibleError("rank " + std::to_string(number_) +
                              " has no stream left to gather parameters on; place stages that "
                              "feed each other closer together");
      }
      stream_ = static_cast<StreamId>(rank_.streams.size());
      rank_.streams.push_back(
          {.role = StreamRole::data_parallel, .priority = 0, .label = "unshard"});
    }
    return *stream_;
  }

  const Problem& problem_;
  const Plan& plan_;
  Communicators& communicators_;
  Program& program_;
  RankProgram& rank_;
  RankProgram old_;  // as it was
  Rank number_;
  std::uint32_t first_slot_;  // of those that are added
  SlotAllocator slots_{true};
  std::map<Stage, Held> shards_;            // and who has read each last
  std::map<Stage, std::uint8_t> replicas_;  // which copy of the stage is here
  std::map<Stage, std::vector<Held>> units_;
  std::vector<const UnshardedStay*> stays_;  // of the rank
  std::size_t next_ = 0;                     // of those
  std::uint32_t runs_ = 0;                   // of the schedule, so far
  std::uint32_t last_compute_ = kNone;
  std::multimap<std::uint32_t, const UnshardedStay*> last_uses_;  // by run
  std::map<Op, std::uint32_t> kernels_;
  std::optional<StreamId> stream_;
  std::map<CommunicatorId, std::uint32_t> called_;  // how many collectives of each so far
  std::vector<int> steps_left_;                     // [sum] that have not read it
  std::set<GradientSums::Id> added_;                // to which something was added
};

}  // namespace

Program insert_sharding(const Problem& problem, Program program) {
  if (!problem.optimizer || !problem.optimizer->sharding) return program;
  const Plan plan(problem, program);
  Communicators communicators(program);
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) {
    RankSharding(problem, plan, communicators, program, rank).insert();
  }
  return program;
}

}  // namespace counterflow
