#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/ir/data_type.h"
#include "scheduler/ir/op.h"
#include "scheduler/ir/units.h"

// The Program: what the compiler makes, verification proves, the simulator times and the executor
// runs. Per rank it is one list of instructions in host issue order, each on a named in-order
// stream. An instruction waits for events, does one thing, then records at most one event.
// Everything a machine needs is here; a pass that has not run yet leaves its fields empty.
namespace counterflow {

// A half-open run of entries in one of a RankProgram's side tables.
struct Range {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  friend constexpr bool operator==(const Range&, const Range&) = default;
};

template <typename T>
[[nodiscard]] std::span<const T> entries(const std::vector<T>& table, Range range) {
  return std::span<const T>(table).subspan(range.first, range.count);
}

// ---- Streams and communicators --------------------------------------------------------------

using StreamId = std::uint8_t;
inline constexpr std::size_t kMaxStreams = 255;

enum class StreamRole : std::uint8_t {
  compute,
  second_compute,
  p2p,  // pipeline sends and receives
  expert_parallel,
  data_parallel,
  tensor_parallel,
  context_parallel,
  copy,  // host <-> device
  host,
};
[[nodiscard]] std::string_view name(StreamRole role);

// An in-order queue of a rank: an instruction begins after the one before it on its stream.
struct Stream {
  StreamRole role = StreamRole::compute;
  std::int8_t priority = 0;  // higher runs first where the device can choose
  std::string label{};       // "compute", "send to 3", "recv from 1"
  friend bool operator==(const Stream&, const Stream&) = default;
};

using CommunicatorId = std::uint16_t;
inline constexpr CommunicatorId kNoCommunicator = std::numeric_limits<CommunicatorId>::max();

enum class CommunicatorKind : std::uint8_t {
  activations,  // pipeline, forward direction
  gradients,    // pipeline, backward direction
  pipeline,     // both directions
  expert_parallel,
  data_parallel,
  tensor_parallel,
  context_parallel,
  control,
};
[[nodiscard]] std::string_view name(CommunicatorKind kind);

// A group of ranks that exchange messages. A channel is (communicator, source, destination): first
// in, first out, no tags on the wire.
struct Communicator {
  CommunicatorKind kind = CommunicatorKind::activations;
  std::vector<Rank> members{};
  std::int32_t max_thread_blocks = 0;  // SM budget, 0: the library's choice
  friend bool operator==(const Communicator&, const Communicator&) = default;
};

// ---- What moves and where it lives ------------------------------------------------------------

enum class PayloadKind : std::uint8_t { activation, gradient, metadata };
[[nodiscard]] std::string_view name(PayloadKind kind);

// What a message means: compared at both ends when they match, shown in traces. `from` is the stage
// that computed it, `to` the stage that needs it.
struct Payload {
  PayloadKind kind = PayloadKind::activation;
  std::uint8_t replica = 0;
  std::uint16_t from = 0;
  std::uint16_t to = 0;
  std::uint16_t part = 0;  // of a message cut in pieces
  Microbatch microbatch = 0;
  friend constexpr auto operator<=>(const Payload&, const Payload&) = default;
};
static_assert(sizeof(Payload) == 12);

inline constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

// One end of a message. `sequence` counts the messages of its channel from 0; slot and version name
// the buffer it leaves from or arrives in (kNone until buffers are assigned). `size` is that on the
// wire; in the buffer the message has unpacked_size() of it.
struct Transfer {
  bool is_send = false;
  DataType type = DataType::bytes;
  std::uint16_t peer = 0;
  std::uint32_t sequence = 0;
  Payload payload;
  std::uint32_t slot = kNone;
  std::uint32_t version = 0;
  Bytes size;
  friend bool operator==(const Transfer&, const Transfer&) = default;
};
static_assert(sizeof(Transfer) == 40);

enum class CollectiveKind : std::uint8_t {
  all_to_all,
  all_reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  barrier,
};
[[nodiscard]] std::string_view name(CollectiveKind kind);

// Works in place: it makes the named version of the slot from the one before.
struct Collective {
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::uint32_t sequence = 0;  // of its communicator
  std::uint32_t slot = kNone;
  std::uint32_t version = 0;
  Bytes size;
  friend bool operator==(const Collective&, const Collective&) = default;
};

// What lives in a slot, and so what an access to it means to the compute that makes it.
enum class BufferPool : std::uint8_t {
  activations,   // messages forward: inputs of a stage (read), outputs (written)
  gradients,     // messages backward: output gradients (read), input gradients (written)
  saved,         // what F leaves for the backward of its stage and microbatch, I for W
  accumulators,  // FP32: weight gradients, summed over microbatches, their norm, and parameters as
                 // they were before a step that is not validated yet
  parameters,    // where they are sharded: a rank's shards, and stages that are unsharded
};
inline constexpr BufferPool kLastBufferPool = BufferPool::parameters;
inline constexpr std::size_t kBufferPools = static_cast<std::size_t>(kLastBufferPool) + 1;
[[nodiscard]] std::string_view name(BufferPool pool);

// A range of a rank's memory pool. A version of a slot is a value: whoever writes makes the next
// one, from 1 on, whoever reads names the one it means.
struct BufferSlot {
  BufferPool pool = BufferPool::activations;
  Bytes offset;
  Bytes size;
  friend bool operator==(const BufferSlot&, const BufferSlot&) = default;
};

// One use of a slot. A write of version v may read version v - 1: accumulators and what is saved
// change in place. The accesses of a run stand in this order: of F the inputs, the outputs, what it
// saves; of I the inputs, the output gradients, the input gradients, what it saves; of W the
// inputs, the output gradients, what was saved, its sums (GradientSums::of); of B those of I, then
// the sums. Messages stand in the declared order of the stage's edges. Of a fused pair those of F
// come first. NORM reads all sums of its rank and writes the norm; STEP reads the sums of its
// stage, then the norm if there is one; if it is to be validated it writes the parameters as they
// were instead. VALIDATE reads the sums, the norm and those parameters.
//
// Where parameters are sharded, those of F, B, I, W and RECOMPUTE stand before all else, a slot a
// unit (ShardedParameters). UNSHARD reads the shard and writes it to its place in each unit, which
// an all_gather completes; RESHARD writes the units: what they held is gone. STEP writes the shard,
// last. Version 0 of a shard is what the step before left.
struct Access {
  std::uint32_t slot = kNone;
  std::uint32_t version : 31 = 0;
  std::uint32_t is_write : 1 = 0;
  friend bool operator==(const Access&, const Access&) = default;
};
static_assert(sizeof(Access) == 8);

// ---- Instructions -------------------------------------------------------------------------------

// What a `run` calls: the compute of one stage (or of a fused pair, then `paired` names the stage
// of the backward), with its predicted cost. Microbatches of equal cost share a kernel.
struct Kernel {
  OpKind kind = OpKind::none;
  OpKind paired_kind = OpKind::none;
  std::uint8_t replica = 0;
  std::uint8_t paired_replica = 0;
  std::uint16_t stage = 0;
  std::uint16_t paired_stage = 0;
  Time duration{0};
  Bytes allocates{};  // when it begins
  Bytes frees{};      // when it ends
  friend bool operator==(const Kernel&, const Kernel&) = default;
};

enum class InstructionKind : std::uint8_t {
  run,         // kernel, op (and paired)
  transfer,    // a group of sends and receives on one communicator; ends when all of them end
  collective,  // one collective on one communicator
  step_end,    // the optimizer's boundary
};
[[nodiscard]] std::string_view name(InstructionKind kind);

// An event of the same rank that must have been recorded. Event slots may be reused: the generation
// says which recording is meant.
struct EventWait {
  std::uint32_t event = kNone;
  std::uint32_t generation = 0;
  friend constexpr bool operator==(const EventWait&, const EventWait&) = default;
};

struct Instruction {
  InstructionKind kind = InstructionKind::run;
  StreamId stream = 0;
  CommunicatorId communicator = kNoCommunicator;
  std::uint32_t kernel = kNone;  // run: index into Program::kernels
  Op op{};      // run: what is computed; transfer: the first one, as a schedule names it
  Op paired{};  // run of a fused pair: the backward
  std::uint32_t records = kNone;  // the event recorded when it is done
  std::uint32_t generation = 0;   // and which recording of it this is
  Range waits{};                  // into RankProgram::waits
  Range body{};  // by kind: into RankProgram::accesses, ::transfers or ::collectives
  friend bool operator==(const Instruction&, const Instruction&) = default;
};
static_assert(sizeof(Instruction) == 48);

struct RankProgram {
  std::vector<Stream> streams;
  std::vector<Instruction> instructions;  // host issue order
  std::vector<EventWait> waits;
  std::vector<Transfer> transfers;
  std::vector<Collective> collectives;
  std::vector<Access> accesses;
  std::vector<BufferSlot> slots;
  std::uint32_t events = 0;  // how many event slots the instructions name
  Bytes static_memory;       // weights, gradients, optimizer state

  [[nodiscard]] std::span<const EventWait> waits_of(const Instruction& i) const {
    return entries(waits, i.waits);
  }
  [[nodiscard]] std::span<const Access> accesses_of(const Instruction& i) const {
    return i.kind == InstructionKind::run ? entries(accesses, i.body) : std::span<const Access>();
  }
  [[nodiscard]] std::span<const Transfer> transfers_of(const Instruction& i) const {
    return i.kind == InstructionKind::transfer ? entries(transfers, i.body)
                                               : std::span<const Transfer>();
  }
  [[nodiscard]] std::span<const Collective> collectives_of(const Instruction& i) const {
    return i.kind == InstructionKind::collective ? entries(collectives, i.body)
                                                 : std::span<const Collective>();
  }
  friend bool operator==(const RankProgram&, const RankProgram&) = default;
};

struct Program {
  static constexpr std::uint32_t kVersion = 1;

  std::uint32_t version = kVersion;
  std::string schedule;  // the name of the schedule it was lowered from
  int stages = 0;
  int microbatches = 0;
  std::vector<Kernel> kernels;
  std::vector<Communicator> communicators;
  std::vector<RankProgram> ranks;

  [[nodiscard]] std::size_t size() const {
    std::size_t total = 0;
    for (const auto& rank : ranks) total += rank.instructions.size();
    return total;
  }
  friend bool operator==(const Program&, const Program&) = default;
};

// A fingerprint of everything that decides how a program runs; ranks compare it before they start.
// The same on every machine. O(size).
[[nodiscard]] std::uint64_t hash(const Program& program);

// Heap bytes the program occupies, for the memory budget of 100 bytes an instruction.
[[nodiscard]] std::size_t memory_use(const Program& program);

}  // namespace counterflow
