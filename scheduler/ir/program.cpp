#include "scheduler/ir/program.h"

namespace counterflow {
namespace {

// Mixes whole 64-bit words, field by field, so that the value depends neither on struct padding nor
// on the machine.
class Hasher {
 public:
  void add(std::uint64_t word) {
    state_ = (state_ ^ word) * 0x9e3779b97f4a7c15ULL;
    state_ ^= state_ >> 29U;
  }
  void add_signed(std::int64_t word) { add(static_cast<std::uint64_t>(word)); }
  template <typename E>
  void add_enum(E value) {
    add(static_cast<std::uint64_t>(value));
  }
  void add(const Op& op) {
    add(static_cast<std::uint64_t>(op.kind) | static_cast<std::uint64_t>(op.replica) << 8U |
        static_cast<std::uint64_t>(op.stage) << 16U |
        static_cast<std::uint64_t>(static_cast<std::uint32_t>(op.microbatch)) << 32U);
  }
  void add(Range range) { add(static_cast<std::uint64_t>(range.first) << 32U | range.count); }
  [[nodiscard]] std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0xcbf29ce484222325ULL;
};

void add(Hasher& hasher, const Kernel& kernel) {
  hasher.add(Op{kernel.kind, kernel.replica, kernel.stage, 0});
  hasher.add(Op{kernel.paired_kind, kernel.paired_replica, kernel.paired_stage, 0});
  hasher.add_signed(kernel.duration.count());
  hasher.add_signed(kernel.allocates.value);
  hasher.add_signed(kernel.frees.value);
}

void add(Hasher& hasher, const Communicator& communicator) {
  hasher.add_enum(communicator.kind);
  hasher.add_signed(communicator.max_thread_blocks);
  hasher.add(communicator.members.size());
  for (const Rank member : communicator.members) hasher.add_signed(member);
}

void add(Hasher& hasher, const Transfer& transfer) {
  const Payload& payload = transfer.payload;
  hasher.add(static_cast<std::uint64_t>(transfer.is_send) |
             static_cast<std::uint64_t>(transfer.type) << 8U |
             static_cast<std::uint64_t>(transfer.peer) << 16U |
             static_cast<std::uint64_t>(transfer.sequence) << 32U);
  hasher.add(static_cast<std::uint64_t>(payload.kind) |
             static_cast<std::uint64_t>(payload.replica) << 8U |
             static_cast<std::uint64_t>(payload.from) << 16U |
             static_cast<std::uint64_t>(payload.to) << 32U |
             static_cast<std::uint64_t>(payload.part) << 48U);
  hasher.add_signed(payload.microbatch);
  hasher.add(static_cast<std::uint64_t>(transfer.slot) << 32U | transfer.version);
  hasher.add_signed(transfer.size.value);
}

void add(Hasher& hasher, const Collective& collective) {
  hasher.add_enum(collective.kind);
  hasher.add(collective.sequence);
  hasher.add(static_cast<std::uint64_t>(collective.slot) << 32U | collective.version);
  hasher.add_signed(collective.size.value);
}

void add(Hasher& hasher, const Instruction& instruction) {
  hasher.add(static_cast<std::uint64_t>(instruction.kind) |
             static_cast<std::uint64_t>(instruction.stream) << 8U |
             static_cast<std::uint64_t>(instruction.communicator) << 16U |
             static_cast<std::uint64_t>(instruction.kernel) << 32U);
  hasher.add(instruction.op);
  hasher.add(instruction.paired);
  hasher.add(static_cast<std::uint64_t>(instruction.records) << 32U | instruction.generation);
  hasher.add(instruction.waits);
  hasher.add(instruction.body);
}

void add(Hasher& hasher, const RankProgram& rank) {
  hasher.add(rank.streams.size());
  for (const Stream& stream : rank.streams) {
    hasher.add_enum(stream.role);
    hasher.add_signed(stream.priority);
  }
  hasher.add(rank.instructions.size());
  for (const Instruction& instruction : rank.instructions) add(hasher, instruction);
  for (const EventWait& wait : rank.waits) {
    hasher.add(static_cast<std::uint64_t>(wait.event) << 32U | wait.generation);
  }
  for (const Transfer& transfer : rank.transfers) add(hasher, transfer);
  for (const Collective& collective : rank.collectives) add(hasher, collective);
  for (const Access& access : rank.accesses) {
    hasher.add(static_cast<std::uint64_t>(access.slot) << 32U | access.version);
    hasher.add(access.is_write);
  }
  for (const BufferSlot& slot : rank.slots) {
    hasher.add_enum(slot.pool);
    hasher.add_signed(slot.offset.value);
    hasher.add_signed(slot.size.value);
  }
  hasher.add(rank.events);
  hasher.add_signed(rank.static_memory.value);
}

template <typename T>
std::size_t heap(const std::vector<T>& v) {
  return v.capacity() * sizeof(T);
}

}  // namespace

std::string_view name(StreamRole role) {
  switch (role) {
    case StreamRole::compute:
      return "compute";
    case StreamRole::second_compute:
      return "second_compute";
    case StreamRole::p2p:
      return "p2p";
    case StreamRole::expert_parallel:
      return "expert_parallel";
    case StreamRole::data_parallel:
      return "data_parallel";
    case StreamRole::tensor_parallel:
      return "tensor_parallel";
    case StreamRole::context_parallel:
      return "context_parallel";
    case StreamRole::copy:
      return "copy";
    case StreamRole::host:
      return "host";
  }
  return "";
}

std::string_view name(CommunicatorKind kind) {
  switch (kind) {
    case CommunicatorKind::activations:
      return "activations";
    case CommunicatorKind::gradients:
      return "gradients";
    case CommunicatorKind::pipeline:
      return "pipeline";
    case CommunicatorKind::expert_parallel:
      return "expert_parallel";
    case CommunicatorKind::data_parallel:
      return "data_parallel";
    case CommunicatorKind::tensor_parallel:
      return "tensor_parallel";
    case CommunicatorKind::context_parallel:
      return "context_parallel";
    case CommunicatorKind::control:
      return "control";
  }
  return "";
}

std::string_view name(PayloadKind kind) {
  switch (kind) {
    case PayloadKind::activation:
      return "activation";
    case PayloadKind::gradient:
      return "gradient";
    case PayloadKind::metadata:
      return "shape";
  }
  return "";
}

std::string_view name(BufferPool pool) {
  switch (pool) {
    case BufferPool::activations:
      return "activations";
    case BufferPool::gradients:
      return "gradients";
    case BufferPool::saved:
      return "saved";
    case BufferPool::accumulators:
      return "accumulators";
    case BufferPool::parameters:
      return "parameters";
  }
  return "";
}

std::string_view name(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_to_all:
      return "all_to_all";
    case CollectiveKind::all_reduce:
      return "all_reduce";
    case CollectiveKind::reduce_scatter:
      return "reduce_scatter";
    case CollectiveKind::all_gather:
      return "all_gather";
    case CollectiveKind::broadcast:
      return "broadcast";
    case CollectiveKind::barrier:
      return "barrier";
  }
  return "";
}

std::string_view name(InstructionKind kind) {
  switch (kind) {
    case InstructionKind::run:
      return "run";
    case InstructionKind::transfer:
      return "transfer";
    case InstructionKind::collective:
      return "collective";
    case InstructionKind::step_end:
      return "step_end";
  }
  return "";
}

std::uint64_t hash(const Program& program) {
  Hasher hasher;
  hasher.add(program.version);
  hasher.add_signed(program.stages);
  hasher.add_signed(program.microbatches);
  hasher.add(program.kernels.size());
  for (const Kernel& kernel : program.kernels) add(hasher, kernel);
  hasher.add(program.communicators.size());
  for (const Communicator& communicator : program.communicators) add(hasher, communicator);
  hasher.add(program.ranks.size());
  for (const RankProgram& rank : program.ranks) add(hasher, rank);
  return hasher.value();
}

std::size_t memory_use(const Program& program) {
  std::size_t total = heap(program.kernels) + heap(program.communicators) + heap(program.ranks);
  for (const Communicator& communicator : program.communicators) {
    total += heap(communicator.members);
  }
  for (const RankProgram& rank : program.ranks) {
    total += heap(rank.streams) + heap(rank.instructions) + heap(rank.waits) +
             heap(rank.transfers) + heap(rank.collectives) + heap(rank.accesses) + heap(rank.slots);
  }
  return total;
}

}  // namespace counterflow
