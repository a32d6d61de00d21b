#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <tuple>
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

Stage stage_here(const Transfer& transfer) {
  return transfer.is_send ? transfer.payload.from : transfer.payload.to;
}
Stage stage_there(const Transfer& transfer) {
  return transfer.is_send ? transfer.payload.to : transfer.payload.from;
}

void append_other_end(std::string& out, bool is_send, Stage other) {
  out += is_send ? '>' : '<';
  append_number(out, other);
}

// Which transfers of a rank must name their other end: those of a stage that has several.
class OtherEnds {
 public:
  explicit OtherEnds(const RankProgram& rank) {
    for (const Transfer& transfer : rank.transfers) {
      const auto [known, fresh] = first_.try_emplace(key(transfer), stage_there(transfer));
      if (!fresh && known->second != stage_there(transfer)) known->second = kAnyStage;
    }
  }
  [[nodiscard]] bool are_several(const Transfer& transfer) const {
    return first_.at(key(transfer)) == kAnyStage;
  }

 private:
  using Key = std::tuple<bool, PayloadKind, std::uint8_t, Stage>;
  static Key key(const Transfer& transfer) {
    return {transfer.is_send, transfer.payload.kind, transfer.payload.replica,
            stage_here(transfer)};
  }
  std::map<Key, Stage> first_;
};

bool skips_stages(const Transfer& transfer) {
  return std::abs(transfer.payload.from - transfer.payload.to) > 1;
}

// The transfers that schedules have a word for; `append_other` writes the others, or nothing.
template <typename NamesOtherEnd, typename AppendOther>
void append_group(std::string& out, std::span<const Transfer> transfers,
                  NamesOtherEnd names_other_end, AppendOther append_other) {
  const std::size_t begin = out.size();
  std::size_t count = 0;
  for (const Transfer& transfer : transfers) {
    const std::size_t before = out.size();
    if (count > 0) out += ';';
    const std::size_t first = out.size();
    if (const std::optional<Op> op = named_by_schedules(transfer)) {
      append_text(out, *op);
      if (names_other_end(transfer)) {
        append_other_end(out, transfer.is_send, stage_there(transfer));
      }
    } else {
      append_other(transfer);
    }
    if (out.size() == first) {
      out.resize(before);
    } else {
      ++count;
    }
  }
  if (count > 1) {
    out.insert(begin, 1, '[');
    out += ']';
  }
}

void append_instruction(std::string& out, const RankProgram& rank, const OtherEnds& ends,
                        const Instruction& instruction) {
  switch (instruction.kind) {
    case InstructionKind::run:
      append_text(out, Slot{instruction.op, instruction.paired});
      break;
    case InstructionKind::transfer:
      append_group(
          out, rank.transfers_of(instruction),
          [&](const Transfer& transfer) {
            return skips_stages(transfer) || ends.are_several(transfer);
          },
          [](const Transfer&) {});
      break;
    case InstructionKind::collective:
      // Of the collectives, schedules name those of a whole stage, once for all its buckets.
      if (instruction.op.kind != OpKind::none && !has_microbatch(instruction.op.kind) &&
          instruction.op.microbatch == 0) {
        append_text(out, instruction.op);
      }
      break;
    case InstructionKind::step_end:
      break;
  }
}

void append_action(std::string& out, const Action& action) {
  const auto append_end = [&](const Op& op, std::size_t k) {
    append_text(out, op);
    if (k < action.others.size() && action.others[k] != kAnyStage) {
      append_other_end(out, is_send(op.kind), action.others[k]);
    }
  };
  if (action.form == Action::Form::pair) {
    append_text(out, Slot{action.op, action.paired});
    return;
  }
  if (action.form == Action::Form::op) {
    append_end(action.op, 0);
    return;
  }
  for (std::size_t k = 0; k < action.group.size(); ++k) {
    out += k == 0 ? '[' : ';';
    append_end(action.group[k], k);
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
  out += replica_prefix(op.replica);
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

void append_text(std::string& out, std::span<const Transfer> transfers) {
  append_group(out, transfers, skips_stages, [&](const Transfer& transfer) {
    if (transfer.payload.kind != PayloadKind::metadata) return;
    append_number(out, stage_here(transfer));
    out += transfer.is_send ? "SEND_SHAPE" : "RECV_SHAPE";
    append_number(out, transfer.payload.microbatch);
    append_other_end(out, transfer.is_send, stage_there(transfer));
  });
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
    const OtherEnds ends(rank);
    for (const Instruction& instruction : rank.instructions) {
      rows.add_cell([&](std::string& out) { append_instruction(out, rank, ends, instruction); });
    }
    rows.end_row();
  }
  return rows.take();
}

}  // namespace counterflow
