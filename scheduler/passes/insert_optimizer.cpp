#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/error.h"
#include "scheduler/graph/gradient_sums.h"
#include "scheduler/graph/op_messages.h"
#include "scheduler/passes/communicators.h"
#include "scheduler/passes/passes.h"
#include "scheduler/passes/reduction_order.h"

// Reductions take their place in the global sequence that insert_transfers makes: by the time at
// which the last member is ready, after transfers of that time and before computes. Norm, steps and
// their validation come after everything. So every rank's list is still part of one sequence, and
// what insert_transfers proves holds.
namespace counterflow {
namespace {

using Id = GradientSums::Id;

// Everything is in issue order; what is added to later counts from the last.
struct Use {
  std::uint32_t slot = kNone;
  std::uint32_t version = 0;
  std::uint32_t instruction = kNone;  // the last that adds to the sum, or else reduces it
};

class RankOptimizer {
 public:
  RankOptimizer(const Problem& problem, const GradientSums& sums, const RunTimes& times,
                Communicators& communicators, Program& program, std::size_t rank)
      : problem_(problem),
        sums_(sums),
        times_(times),
        communicators_(communicators),
        program_(program),
        rank_(program.ranks[rank]),
        number_(static_cast<Rank>(rank)),
        uses_(sums.size()) {}

  void insert(const std::vector<Reduction>& reductions) {
    const std::vector<Instruction> before = std::exchange(rank_.instructions, {});
    auto next = reductions.begin();
    for (const Instruction& instruction : before) {
      const Time at = time_of(instruction);
      const bool run = instruction.kind == InstructionKind::run;
      for (; next != reductions.end() && (next->ready < at || (run && next->ready == at)); ++next) {
        reduce(next->sum);
      }
      append(instruction);
    }
    for (; next != reductions.end(); ++next) reduce(next->sum);
    if (problem_.optimizer->global_norm) add_norm();
    add_steps();
  }

 private:
  [[nodiscard]] Time time_of(const Instruction& instruction) {
    if (instruction.kind == InstructionKind::transfer) {
      return times_.made(rank_.transfers[instruction.body.first].payload);
    }
    return times_.begin(static_cast<std::size_t>(number_), position_);
  }

  void append(const Instruction& instruction) {
    const auto index = static_cast<std::uint32_t>(rank_.instructions.size());
    rank_.instructions.push_back(instruction);
    if (instruction.kind != InstructionKind::run) return;
    ++position_;
    for (const Op& op : {instruction.op, instruction.paired}) {
      if (accumulates(op)) note(sums_.of(op.stage), rank_.accesses_of(instruction), index);
    }
  }

  // A backward's sums are its last accesses, and it comes last in a pair.
  void note(std::span<const Id> ids, std::span<const Access> accesses, std::uint32_t index) {
    const auto last = accesses.last(ids.size());
    for (std::size_t k = 0; k < ids.size(); ++k) {
      uses_[ids[k]] = {last[k].slot, last[k].version, index};
    }
  }

  void reduce(Id id) {
    Use& use = uses_[id];
    if (use.slot == kNone) return;  // of other ranks
    const GradientSums::Sum& sum = sums_[id];
    const CommunicatorId communicator =
        communicators_.of(CommunicatorKind::data_parallel, sum.holders);
    // The bucket in the place of the microbatch.
    Op op = named(sum);
    op.kind = OpKind::reduce_gradients;
    op.microbatch = static_cast<Microbatch>(sum.bucket);
    const std::uint32_t before = use.instruction;
    const CollectiveKind kind =
        sum.is_scattered ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
    use.instruction =
        collective(kind, communicator, op, {use.slot, ++use.version, before}, sum.size);
  }

  // By the first chunk of the rank that adds to it.
  [[nodiscard]] Op named(const GradientSums::Sum& sum) const {
    const auto chunks = problem_.placement.chunks_of(number_);
    const auto own = std::ranges::find_if(chunks, [&](const Chunk& chunk) {
      return std::ranges::find(sum.stages, chunk.stage) != sum.stages.end();
    });
    return {OpKind::none, own->replica, static_cast<std::uint16_t>(own->stage), 0};
  }

  // Appends one that waits for an earlier instruction; its index.
  std::uint32_t collective(CollectiveKind kind, CommunicatorId communicator, const Op& op,
                           const Use& use, Bytes size) {
    Instruction instruction{.kind = InstructionKind::collective,
                            .stream = stream(),
                            .communicator = communicator,
                            .op = op};
    wait(instruction, {use.instruction});
    instruction.body = {static_cast<std::uint32_t>(rank_.collectives.size()), 1};
    rank_.collectives.push_back({.kind = kind,
                                 .sequence = called_[communicator]++,
                                 .slot = use.slot,
                                 .version = use.version,
                                 .size = size});
    rank_.instructions.push_back(instruction);
    return static_cast<std::uint32_t>(rank_.instructions.size() - 1);
  }

  // For those that no stream orders already.
  void wait(Instruction& instruction, const std::vector<std::uint32_t>& on) {
    instruction.waits.first = static_cast<std::uint32_t>(rank_.waits.size());
    for (const std::uint32_t index : on) {
      Instruction& recorder = rank_.instructions[index];
      if (recorder.kind == InstructionKind::run && instruction.kind == InstructionKind::run &&
          recorder.stream == instruction.stream) {
        continue;
      }
      if (recorder.records == kNone) recorder.records = rank_.events++;
      rank_.waits.push_back({.event = recorder.records, .generation = recorder.generation});
    }
    instruction.waits.count =
        static_cast<std::uint32_t>(rank_.waits.size()) - instruction.waits.first;
  }

  StreamId stream() {
    if (!stream_) {
      if (rank_.streams.size() == kMaxStreams) {
        throw InfeasibleError("rank " + std::to_string(number_) +
                              " has no stream left for reductions; place stages that feed each "
                              "other closer together");
      }
      stream_ = static_cast<StreamId>(rank_.streams.size());
      rank_.streams.push_back(
          {.role = StreamRole::data_parallel, .priority = 0, .label = "reduce gradients"});
    }
    return *stream_;
  }

  // A run on the compute stream that reads sums; its index.
  std::uint32_t run(const Op& op, Time duration, std::span<const Id> reads,
                    std::vector<std::uint32_t> after, std::vector<Access> also) {
    Instruction instruction{.kind = InstructionKind::run, .kernel = kernel(op, duration), .op = op};
    instruction.body.first = static_cast<std::uint32_t>(rank_.accesses.size());
    for (const Id id : reads) {
      const Use& use = uses_[id];
      rank_.accesses.push_back(access(use, false));
      after.push_back(use.instruction);
    }
    rank_.accesses.insert(rank_.accesses.end(), also.begin(), also.end());
    instruction.body.count =
        static_cast<std::uint32_t>(rank_.accesses.size()) - instruction.body.first;
    wait(instruction, after);
    rank_.instructions.push_back(instruction);
    return static_cast<std::uint32_t>(rank_.instructions.size() - 1);
  }

  std::uint32_t kernel(const Op& op, Time duration) {
    const Kernel made{
        .kind = op.kind, .replica = op.replica, .stage = op.stage, .duration = duration};
    program_.kernels.push_back(made);
    return static_cast<std::uint32_t>(program_.kernels.size() - 1);
  }

  void add_norm() {
    const auto chunks = problem_.placement.chunks_of(number_);
    if (chunks.empty()) return;
    norm_.slot = new_slot(Bytes{4});
    norm_.version = 1;
    norm_.instruction = run(of_chunk(OpKind::gradient_norm, chunks.front()), Time{0},
                            sums_.on(problem_, number_), {}, {access(norm_, true)});
    std::vector<Rank> all;
    for (Rank rank = 0; rank < problem_.ranks(); ++rank) {
      if (!problem_.placement.chunks_of(rank).empty()) all.push_back(rank);
    }
    if (all.size() < 2) return;
    const CommunicatorId communicator = communicators_.of(CommunicatorKind::control, all);
    const std::uint32_t before = norm_.instruction;
    norm_.instruction =
        collective(CollectiveKind::all_reduce, communicator, Op{},
                   {norm_.slot, ++norm_.version, before}, rank_.slots[norm_.slot].size);
  }

  // Behind the sums.
  std::uint32_t new_slot(Bytes size) {
    constexpr std::int64_t kAlignment = 256;
    Bytes offset;
    for (const BufferSlot& slot : rank_.slots) {
      if (slot.pool == BufferPool::accumulators) offset = std::max(offset, slot.offset + slot.size);
    }
    offset.value = (offset.value + kAlignment - 1) / kAlignment * kAlignment;
    rank_.slots.push_back({.pool = BufferPool::accumulators, .offset = offset, .size = size});
    return static_cast<std::uint32_t>(rank_.slots.size() - 1);
  }

  // Where the stage is sharded each rank steps on its share.
  [[nodiscard]] Time step_time(Stage stage) const {
    const Time whole = problem_.optimizer->step[static_cast<std::size_t>(stage)];
    return problem_.optimizer->sharding ? whole / problem_.placement.replicas() : whole;
  }

  // The stages whose gradients are there first go first.
  void add_steps() {
    std::vector<std::pair<std::uint32_t, Chunk>> chunks;
    for (const Chunk& chunk : problem_.placement.chunks_of(number_)) {
      if (!problem_.needs_backward_weight(chunk.stage)) continue;
      std::uint32_t last = 0;
      for (const Id id : sums_.of(chunk.stage)) last = std::max(last, uses_[id].instruction);
      chunks.emplace_back(last, chunk);
    }
    std::ranges::stable_sort(chunks, {}, [](const auto& each) { return each.first; });
    if (!problem_.optimizer->validates()) {
      for (const auto& [last, chunk] : chunks) add_step(chunk);
      return;
    }
    std::vector<Use> snapshots;
    for (const auto& [last, chunk] : chunks) snapshots.push_back(add_early_step(chunk));
    for (std::size_t k = 0; k < chunks.size(); ++k) add_validation(chunks[k].second, snapshots[k]);
  }

  // By the norm, if there is one.
  void add_step(const Chunk& chunk) {
    const Time duration = step_time(chunk.stage);
    const Op op = of_chunk(OpKind::optimizer_step, chunk);
    if (norm_.slot == kNone) {
      run(op, duration, sums_.of(chunk.stage), {}, {});
    } else {
      run(op, duration, sums_.of(chunk.stage), {norm_.instruction}, {access(norm_, false)});
    }
  }

  // Before the norm is known; what it keeps of the parameters as they were.
  Use add_early_step(const Chunk& chunk) {
    const Bytes size = of_stage(problem_.optimizer->snapshot, chunk);
    Use snapshot{.slot = new_slot(size), .version = 1};
    snapshot.instruction =
        run(of_chunk(OpKind::optimizer_step, chunk), of_stage(problem_.optimizer->step, chunk),
            sums_.of(chunk.stage), {}, {access(snapshot, true)});
    kernel_of(snapshot.instruction).allocates = size;
    return snapshot;
  }

  // Once the norm is known: takes a step back, or makes it anew, with what it was made from.
  void add_validation(const Chunk& chunk, const Use& snapshot) {
    const std::uint32_t index =
        run(of_chunk(OpKind::validate_step, chunk), of_stage(problem_.optimizer->validate, chunk),
            sums_.of(chunk.stage), {norm_.instruction, snapshot.instruction},
            {access(norm_, false), access(snapshot, false)});
    kernel_of(index).frees = of_stage(problem_.optimizer->snapshot, chunk);
  }

  template <typename T>
  static T of_stage(const std::vector<T>& each, const Chunk& chunk) {
    return each[static_cast<std::size_t>(chunk.stage)];
  }
  static Op of_chunk(OpKind kind, const Chunk& chunk) {
    return {kind, chunk.replica, static_cast<std::uint16_t>(chunk.stage), 0};
  }
  static Access access(const Use& use, bool is_write) {
    return {.slot = use.slot,
            .version = use.version & 0x7fffffffU,
            .is_write = static_cast<std::uint32_t>(is_write) & 1U};
  }
  [[nodiscard]] Kernel& kernel_of(std::uint32_t index) {
    return program_.kernels[rank_.instructions[index].kernel];
  }

  const Problem& problem_;
  const GradientSums& sums_;
  const RunTimes& times_;
  Communicators& communicators_;
  Program& program_;
  RankProgram& rank_;
  Rank number_;
  std::vector<Use> uses_;  // [sum] on this rank
  Use norm_;
  std::size_t position_ = 0;  // among the runs
  std::optional<StreamId> stream_;
  std::map<CommunicatorId, std::uint32_t> called_;  // how many collectives of each so far
};

// Every copy of the stages must have gradients to add.
void check_copies(const Problem& problem) {
  std::vector<bool> trained(static_cast<std::size_t>(problem.placement.replicas()));
  for (Microbatch mb = 0; mb < problem.microbatches; ++mb) {
    if (problem.trains(mb)) trained[static_cast<std::size_t>(problem.replica_of(mb))] = true;
  }
  if (std::ranges::find(trained, false) == trained.end()) return;
  throw InfeasibleError(
      "no microbatch that trains flows through one copy of the stages, which then has no gradients "
      "to reduce; give two microbatches or more, or a placement that is not bidirectional");
}

bool trains(const Problem& problem) {
  for (Stage stage = 0; stage < problem.stages(); ++stage) {
    if (problem.needs_backward_weight(stage)) return true;
  }
  return false;
}

}  // namespace

Program insert_optimizer(const Problem& problem, Program program) {
  if (!problem.optimizer || !trains(problem)) return program;
  check_copies(problem);
  const GradientSums sums(problem);
  const RunTimes times(problem, program);
  const std::vector<Reduction> reductions = reductions_of(sums, times, program);
  Communicators communicators(program);
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) {
    RankOptimizer(problem, sums, times, communicators, program, rank).insert(reductions);
  }
  return program;
}

}  // namespace counterflow
