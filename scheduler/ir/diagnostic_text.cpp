#include "scheduler/ir/diagnostic_text.h"

#include <fmt/format.h>

#include "scheduler/ir/schedule_file.h"

namespace counterflow {
namespace {

std::string place(const Diagnostic& fault) {
  std::string text;
  if (fault.rank) text += fmt::format("rank {}, ", *fault.rank);
  if (fault.index) text += fmt::format("position {}, ", *fault.index);
  if (fault.op.kind != OpKind::none) text += to_string(fault.op) + ", ";
  if (text.ends_with(", ")) text.resize(text.size() - 2);
  return text;
}

}  // namespace

Op op_of(const Instruction& instruction, const Transfer& transfer) {
  const Payload& payload = transfer.payload;
  if (instruction.body.count == 1 || payload.kind == PayloadKind::metadata) return instruction.op;
  const bool activation = payload.kind == PayloadKind::activation;
  Op op{.kind = activation ? OpKind::receive_forward : OpKind::receive_backward,
        .replica = payload.replica,
        .stage = payload.to,
        .microbatch = payload.microbatch};
  if (transfer.is_send) {
    op.kind = activation ? OpKind::send_forward : OpKind::send_backward;
    op.stage = payload.from;
  }
  return op;
}

std::string to_line(const Diagnostic& fault) {
  const std::string where = place(fault);
  return fmt::format("{}{}[{}] {}", where, where.empty() ? "" : ": ", fault.rule, fault.message);
}

}  // namespace counterflow
