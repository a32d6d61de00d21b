#include "report/trace_label.h"

#include <fmt/format.h>

#include <iterator>

#include "report/kind_names.h"
#include "scheduler/ir/schedule_file.h"

namespace counterflow {
namespace {

TraceLabel label_of_run(const Instruction& instruction) {
  const Op& op = instruction.op;
  const Op& paired = instruction.paired;
  const bool fused = paired.kind != OpKind::none;
  TraceLabel label;
  append_text(label.name, op);
  label.category = fused ? "overlapped" : spoken(op.kind);
  label.add("stage", op.stage);
  label.add("microbatch", op.microbatch);
  if (op.replica != 0) label.add("replica", op.replica);
  if (fused) {
    label.name += '&';
    append_text(label.name, paired);
    label.add("paired_stage", paired.stage);
    label.add("paired_microbatch", paired.microbatch);
  }
  return label;
}

TraceLabel label_of_transfer(const RankProgram& rank, const Instruction& instruction) {
  const auto transfers = rank.transfers_of(instruction);
  Bytes sum;
  for (const Transfer& transfer : transfers) sum += transfer.size;
  TraceLabel label;
  append_text(label.name, instruction.op);
  if (transfers.size() > 1) {
    fmt::format_to(std::back_inserter(label.name), " and {} more", transfers.size() - 1);
  }
  label.category = spoken(instruction.op.kind);
  label.add("bytes", sum.value);
  if (!transfers.empty()) label.add("peer", transfers.front().peer);
  return label;
}

TraceLabel label_of_collective(const RankProgram& rank, const Instruction& instruction) {
  const auto body = entries(rank.collectives, instruction.body);
  TraceLabel label;
  label.category = body.empty() ? name(InstructionKind::collective) : name(body.front().kind);
  if (instruction.op.kind == OpKind::none) {
    label.name = label.category;
  } else {
    append_text(label.name, instruction.op);
  }
  label.add("bytes", body.empty() ? 0 : body.front().size.value);
  return label;
}

}  // namespace

TraceLabel trace_label(const RankProgram& rank, const Instruction& instruction) {
  switch (instruction.kind) {
    case InstructionKind::run:
      return label_of_run(instruction);
    case InstructionKind::transfer:
      return label_of_transfer(rank, instruction);
    case InstructionKind::collective:
      return label_of_collective(rank, instruction);
    case InstructionKind::step_end:
      break;
  }
  TraceLabel label;
  label.name = "step end";
  label.category = "step end";
  return label;
}

}  // namespace counterflow
