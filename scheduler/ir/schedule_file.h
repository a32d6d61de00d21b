#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/ir/op.h"
#include "scheduler/ir/program.h"
#include "scheduler/ir/schedule.h"

// The text form of schedules: PyTorch's CSV grammar, one row a rank, one cell an action, an empty
// cell is no action. Extensions: `~` before an op for replica 1 (`2~` for replica 2), `[a;b;c]` for
// transfers issued as one group, `0SEND_F3>2` and `2RECV_F3<0` for the stage at the other end of a
// transfer where a stage feeds, or is fed by, several. Without it the k-th equal transfer of a rank
// is of the stage's k-th neighbour.
namespace counterflow {

inline constexpr Stage kAnyStage = -1;

// One cell.
struct Action {
  enum class Form : std::uint8_t { op, pair, group };
  Form form = Form::op;
  Op op;                  // the op; of a pair the forward
  Op paired;              // of a pair: the backward
  std::vector<Op> group;  // of a group: the transfers, in order
  // Of a transfer, or each of a group: the stage at the other end, kAnyStage where the file does
  // not say. Empty: it says none.
  std::vector<Stage> others{};
};

// A schedule as a file holds it, with or without communication and stage actions.
struct ScheduleFile {
  std::string name;                       // for messages: the path it came from
  std::vector<std::vector<Action>> rows;  // [rank][position], empty cells left out
  bool has_communication = false;         // any transfer, alone or in a group

  // The compute alone, in order.
  [[nodiscard]] Schedule compute() const;
};

// "0F3", "~2B1", "1SEND_F2", "0UNSHARD": what parse_schedule reads back.
[[nodiscard]] std::string to_string(const Op& op);
// "0F3" or "(0F7;7B3)OVERLAP_F_B".
[[nodiscard]] std::string to_string(const Slot& slot);
// Appends instead of returning, for long files.
void append_text(std::string& out, const Op& op);
void append_text(std::string& out, const Slot& slot);
// A transfer, or a group of several in brackets: "0SEND_F1", "[0SEND_F1;0RECV_B0]"; where one skips
// stages the other end is named: "0SEND_F1>2". For messages to people, so that metadata, which
// schedules have no word for, is named as well: "0SEND_SHAPE1>1".
void append_text(std::string& out, std::span<const Transfer> transfers);

// Reads a schedule file, strictly: trailing junk, an unknown action, a missing microbatch number or
// an overlong number is an InputError with file, row (= line) and column (= cell, counted from 1).
// The letter B is resolved for each (stage, replica, microbatch): beside a W it is the input
// gradient, alone the full backward; BW is always the full backward; both ways for the same
// microbatch of a stage is an error. Blank lines at the end are no ranks; a blank line elsewhere,
// or one with an empty cell ("" or a comma alone), is a rank without actions. O(length), but for
// sorting the gradient work.
[[nodiscard]] ScheduleFile parse_schedule(std::string_view text, const std::string& name);

// One row a rank, compute only. PyTorch's _load_csv reads it, unless the schedule has two replicas.
[[nodiscard]] std::string to_csv(const Schedule& schedule);
// The file as it was read, its communication included; parse_schedule reads the same back.
[[nodiscard]] std::string to_csv(const ScheduleFile& file);
// One row a rank, in issue order, with communication; each transfer group of several in brackets.
[[nodiscard]] std::string to_csv(const Program& program);

}  // namespace counterflow
