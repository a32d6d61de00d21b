#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>

#include "scheduler/ir/schedule_file.h"

namespace counterflow {
namespace {

void append_number(std::string& out, std::int64_t value) {
  const fmt::format_int digits(value);
  out.append(digits.data(), digits.size());
}

// The op that names one end of a message. Schedules have no word for metadata, and a message cut in
// parts is named once, by its first part.
std::optional<Op> named_by_schedules(const Transfer& transfer) {
  const Payload& payload = transfer.payload;
  if (payload.kind == PayloadKind::metadata || payload.part != 0) return std::nullopt;
  const bool activation = payload.kind == PayloadKind::activation;
  Op op;
  op.replica = payload.replica;
  op.microbatch = payload.microbatch;
  if (transfer.is_send) {
    op.kind = activation ? OpKind::send_forward : OpKind::send_backward;
    op.stage = payload.from;
  } else {
    op.kind = activation ? OpKind::receive_forward : OpKind::receive_backward;
    op.stage = payload.to;
  }
  return op;
}

void append_group(std::string& out, std::span<const Transfer> transfers) {
  const std::size_t begin = out.size();
  std::size_t count = 0;
  for (const Transfer& transfer : transfers) {
    const std::optional<Op> op = named_by_schedules(transfer);
    if (!op) continue;
    if (count++ > 0) out += ';';
    append_text(out, *op);
  }
  if (count > 1) {
    out.insert(begin, 1, '[');
    out += ']';
  }
}

void append_instruction(std::string& out, const RankProgram& rank, const Instruction& instruction) {
  switch (instruction.kind) {
    case InstructionKind::run:
      append_text(out, Slot{instruction.op, instruction.paired});
      break;
    case InstructionKind::transfer:
      append_group(out, rank.transfers_of(instruction));
      break;
    case InstructionKind::collective:
      // Of the collectives, schedules name those of a whole stage.
      if (instruction.op.kind != OpKind::none && !has_microbatch(instruction.op.kind)) {
        append_text(out, instruction.op);
      }
      break;
    case InstructionKind::step_end:
      break;
  }
}

void append_action(std::string& out, const Action& action) {
  if (action.form != Action::Form::group) {
    append_text(out, Slot{action.op, action.paired});
    return;
  }
  char separator = '[';
  for (const Op& op : action.group) {
    out += std::exchange(separator, ';');
    append_text(out, op);
  }
  out += ']';
}

// Builds the rows: cells that stay empty are dropped.
class Rows {
 public:
  template <typename AppendCell>
  void add_cell(AppendCell append_cell) {
    const std::size_t before = text_.size();
    if (before > row_begin_) text_ += ',';
    const std::size_t begin = text_.size();
    append_cell(text_);
    if (text_.size() == begin) text_.resize(before);
  }
  void end_row() {
    // A blank last line would not be read as a rank; a quoted empty cell is.
    if (text_.size() == row_begin_) text_ += "\"\"";
    text_ += '\n';
    row_begin_ = text_.size();
  }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  std::string text_;
  std::size_t row_begin_ = 0;
};

}  // namespace

void append_text(std::string& out, const Op& op) {
  if (op.replica != 0) out += '~';
  append_number(out, op.stage);
  out += token(op.kind);
  if (has_microbatch(op.kind)) append_number(out, op.microbatch);
}

void append_text(std::string& out, const Slot& slot) {
  if (!slot.is_pair()) {
    append_text(out, slot.first);
    return;
  }
  out += '(';
  append_text(out, slot.first);
  out += ';';
  append_text(out, slot.second);
  out += ")OVERLAP_F_B";
}

std::string to_string(const Op& op) {
  std::string out;
  append_text(out, op);
  return out;
}

std::string to_string(const Slot& slot) {
  std::string out;
  append_text(out, slot);
  return out;
}

std::string to_csv(const Schedule& schedule) {
  Rows rows;
  for (const auto& order : schedule.ranks) {
    for (const Slot& slot : order) {
      rows.add_cell([&](std::string& out) { append_text(out, slot); });
    }
    rows.end_row();
  }
  return rows.take();
}

std::string to_csv(const ScheduleFile& file) {
  Rows rows;
  for (const auto& row : file.rows) {
    for (const Action& action : row) {
      rows.add_cell([&](std::string& out) { append_action(out, action); });
    }
    rows.end_row();
  }
  return rows.take();
}

std::string to_csv(const Program& program) {
  Rows rows;
  for (const RankProgram& rank : program.ranks) {
    for (const Instruction& instruction : rank.instructions) {
      rows.add_cell([&](std::string& out) { append_instruction(out, rank, instruction); });
    }
    rows.end_row();
  }
  return rows.take();
}

}  // namespace counterflow
