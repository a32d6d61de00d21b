#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/graph/channels.h"
#include "scheduler/passes/kernel_table.h"
#include "scheduler/passes/passes.h"

namespace counterflow {
namespace {

Program empty_program(const Problem& problem, const std::string& schedule) {
  Program program;
  program.schedule = schedule;
  program.stages = problem.stages();
  program.microbatches = problem.microbatches;
  program.ranks.resize(static_cast<std::size_t>(problem.ranks()));
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) {
    program.ranks[rank].streams = {
        {.role = StreamRole::compute, .priority = 0, .label = "compute"}};
    if (!problem.limits.static_memory.empty()) {
      program.ranks[rank].static_memory = problem.limits.static_memory[rank];
    }
  }
  return program;
}

Instruction run(const Slot& slot, KernelTable& kernels) {
  return {.kind = InstructionKind::run,
          .kernel = kernels.of(slot),
          .op = slot.first,
          .paired = slot.second};
}

// Turns the ops of a file into transfers. An op names one end and its stage; where the file does
// not name the stage at the other end too, which channel it means follows from the count: the k-th
// time a rank sends (receives) the same thing it is the stage's k-th output (input) that crosses
// ranks.
class TransferReader {
 public:
  explicit TransferReader(const Channels& channels) : channels_(channels) {}

  Transfer read(const Op& op, Stage other) {
    Transfer transfer;
    transfer.is_send = is_send(op.kind);
    const auto id = other == kAnyStage ? channel_of(op, count_[op]++)
                                       : channels_.find(payload_between(op, other));
    if (id) {
      const Channels::Channel& channel = channels_[*id];
      transfer.peer =
          static_cast<std::uint16_t>(transfer.is_send ? channel.destination : channel.source);
      transfer.payload = channel.payload(op.microbatch);
      transfer.size = channel.size;
    } else {
      // No such edge, which verify() objects to.
      transfer.payload = payload_between(op, other == kAnyStage ? op.stage : other);
    }
    return transfer;
  }

 private:
  static bool is_forward(const Op& op) {
    return op.kind == OpKind::send_forward || op.kind == OpKind::receive_forward;
  }

  static Payload payload_between(const Op& op, Stage other) {
    const auto there = static_cast<std::uint16_t>(other);
    return {.kind = is_forward(op) ? PayloadKind::activation : PayloadKind::gradient,
            .replica = op.replica,
            .from = is_send(op.kind) ? op.stage : there,
            .to = is_send(op.kind) ? there : op.stage,
            .part = 0,
            .microbatch = op.microbatch};
  }

  // The last of its kind where the file asks for more than there are.
  [[nodiscard]] std::optional<Channels::Id> channel_of(const Op& op, int nth) const {
    const Op compute{is_forward(op) ? OpKind::forward : OpKind::backward_input, op.replica,
                     op.stage, op.microbatch};
    std::optional<Channels::Id> found;
    for (const Channels::Id id :
         is_send(op.kind) ? channels_.outputs(compute) : channels_.inputs(compute)) {
      if (!found || channels_[id].crosses_ranks()) found = id;
      if (channels_[id].crosses_ranks() && nth-- == 0) break;
    }
    return found;
  }

  const Channels& channels_;
  std::map<Op, int> count_;
};

void append_transfers(RankProgram& rank, TransferReader& reader, const std::vector<Op>& ops,
                      const std::vector<Stage>& others) {
  Instruction instruction{.kind = InstructionKind::transfer, .op = ops.front()};
  instruction.body = {static_cast<std::uint32_t>(rank.transfers.size()),
                      static_cast<std::uint32_t>(ops.size())};
  for (std::size_t k = 0; k < ops.size(); ++k) {
    rank.transfers.push_back(reader.read(ops[k], others.empty() ? kAnyStage : others[k]));
  }
  rank.instructions.push_back(instruction);
}

}  // namespace

Program lower_compute(const Problem& problem, const Schedule& schedule) {
  Program program = empty_program(problem, schedule.name);
  KernelTable kernels(problem);
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    auto& instructions = program.ranks[rank].instructions;
    instructions.reserve(schedule.ranks[rank].size());
    for (const Slot& slot : schedule.ranks[rank]) instructions.push_back(run(slot, kernels));
  }
  program.kernels = std::move(kernels).take();
  return program;
}

Program lower_file(const Problem& problem, const ScheduleFile& file) {
  Program program = empty_program(problem, file.name);
  KernelTable kernels(problem);
  const Channels channels(problem);
  for (std::size_t rank = 0; rank < file.rows.size(); ++rank) {
    RankProgram& target = program.ranks[rank];
    TransferReader reader(channels);
    for (const Action& action : file.rows[rank]) {
      if (action.form == Action::Form::group) {
        append_transfers(target, reader, action.group, action.others);
      } else if (is_transfer(action.op.kind)) {
        append_transfers(target, reader, {action.op}, action.others);
      } else {
        target.instructions.push_back(run({action.op, action.paired}, kernels));
      }
    }
  }
  program.kernels = std::move(kernels).take();
  return program;
}

}  // namespace counterflow
