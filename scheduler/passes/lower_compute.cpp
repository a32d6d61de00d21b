#include <utility>

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

// Turns the ops of a file into transfers. An op names one end and its stage; which edge of the
// stage graph it means follows from the count: the k-th time a rank sends (receives) the same thing
// it is to its k-th successor (from its k-th predecessor) on another rank.
class TransferReader {
 public:
  TransferReader(const Problem& problem, Rank rank) : problem_(problem), rank_(rank) {}

  Transfer read(const Op& op) {
    const bool forward = op.kind == OpKind::send_forward || op.kind == OpKind::receive_forward;
    const bool send = is_send(op.kind);
    // Data leaves a stage for its successors in the forward direction, for its predecessors else.
    const auto neighbours = forward == send ? problem_.graph.successors(op.stage)
                                            : problem_.graph.predecessors(op.stage);
    int seen = count_[op]++;
    Stage other = op.stage;  // no such edge: names itself, which verify() objects to
    for (const Stage neighbour : neighbours) {
      if (problem_.placement.rank_of(neighbour, op.replica) == rank_) continue;
      other = neighbour;
      if (seen-- == 0) break;
    }
    if (other == op.stage && !neighbours.empty()) other = neighbours.front();
    Transfer transfer;
    transfer.is_send = send;
    transfer.peer = static_cast<std::uint16_t>(problem_.placement.rank_of(other, op.replica));
    transfer.payload = {.kind = forward ? PayloadKind::activation : PayloadKind::gradient,
                        .replica = op.replica,
                        .from = send ? op.stage : static_cast<std::uint16_t>(other),
                        .to = send ? static_cast<std::uint16_t>(other) : op.stage,
                        .part = 0,
                        .microbatch = op.microbatch};
    // What flows over an edge has the size of the lower stage's output, in both directions.
    transfer.size = problem_.message[static_cast<std::size_t>(forward ? transfer.payload.from
                                                                      : transfer.payload.to)];
    return transfer;
  }

 private:
  const Problem& problem_;
  Rank rank_;
  std::map<Op, int> count_;
};

void append_transfers(RankProgram& rank, TransferReader& reader, const std::vector<Op>& ops) {
  Instruction instruction{.kind = InstructionKind::transfer, .op = ops.front()};
  instruction.body = {static_cast<std::uint32_t>(rank.transfers.size()),
                      static_cast<std::uint32_t>(ops.size())};
  for (const Op& op : ops) rank.transfers.push_back(reader.read(op));
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
  for (std::size_t rank = 0; rank < file.rows.size(); ++rank) {
    RankProgram& target = program.ranks[rank];
    TransferReader reader(problem, static_cast<Rank>(rank));
    for (const Action& action : file.rows[rank]) {
      if (action.form == Action::Form::group) {
        append_transfers(target, reader, action.group);
      } else if (is_transfer(action.op.kind)) {
        append_transfers(target, reader, {action.op});
      } else {
        target.instructions.push_back(run({action.op, action.paired}, kernels));
      }
    }
  }
  program.kernels = std::move(kernels).take();
  return program;
}

}  // namespace counterflow
