#include "scheduler/verify/repair.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "scheduler/error.h"
#include "scheduler/ir/diagnostic_text.h"
#include "scheduler/passes/compile.h"
#include "scheduler/verify/verify.h"

namespace counterflow {
namespace {

[[noreturn]] void refuse(const Diagnostic& fault) {
  throw InfeasibleError("cannot be repaired by moving transfers: " + to_line(fault));
}

// A receive after its use, ends that meet the wrong way round, and groups that are too large are
// faults of where a transfer stands, which can be mended. Every other is final.
constexpr std::string_view kMisplaced[] = {"order", "payload", "crossing", "group"};

void require_all_transfers(const Problem& problem, const ScheduleFile& file) {
  const Diagnostics order = verify(problem, file);
  if (!order.empty()) refuse(order.front());
  const Diagnostics found = verify_communication(problem, import(problem, file), {}).diagnostics;
  const auto final = std::ranges::find_if(found, [](const Diagnostic& fault) {
    return std::ranges::find(kMisplaced, fault.rule) == std::end(kMisplaced);
  });
  if (final != found.end()) refuse(*final);
}

bool is_stage_action(const Action& action) {
  return action.form == Action::Form::op && !has_microbatch(action.op.kind);
}
bool is_transfers(const Action& action) {
  return action.form == Action::Form::group ||
         (action.form == Action::Form::op && is_transfer(action.op.kind));
}

// The one transfer of a lowered instruction. It names its other end where its stage has several.
Action transfer_action(const Problem& problem, const RankProgram& rank,
                       const Instruction& instruction) {
  Action action{.form = Action::Form::op, .op = instruction.op, .paired = {}, .group = {}};
  const Payload& payload = rank.transfers[instruction.body.first].payload;
  const bool forward = payload.kind == PayloadKind::activation;
  const bool send = is_send(instruction.op.kind);
  const Stage here = instruction.op.stage;
  const auto neighbours =
      forward == send ? problem.graph.successors(here) : problem.graph.predecessors(here);
  if (neighbours.size() > 1) action.others = {send ? payload.to : payload.from};
  return action;
}

// A lowered rank's list, with the stage actions of the file's row where they were among its
// computes.
std::vector<Action> with_stage_actions(const Problem& problem, const RankProgram& rank,
                                       const std::vector<Action>& row) {
  std::vector<Action> result;
  auto original = row.begin();
  // Everything in the row up to its next compute that is not a transfer.
  const auto copy_stage_actions = [&] {
    for (; original != row.end() && (is_stage_action(*original) || is_transfers(*original));
         ++original) {
      if (is_stage_action(*original)) result.push_back(*original);
    }
  };
  for (const Instruction& instruction : rank.instructions) {
    if (instruction.kind == InstructionKind::transfer) {
      result.push_back(transfer_action(problem, rank, instruction));
      continue;
    }
    copy_stage_actions();
    result.push_back(*original++);
  }
  copy_stage_actions();
  return result;
}

}  // namespace

ScheduleFile repair(const Problem& problem, const ScheduleFile& file) {
  require_all_transfers(problem, file);
  if (verify_communication(problem, import(problem, file), kAllSemantics).diagnostics.empty()) {
    return file;
  }
  const Program program = compile(problem, file.compute());
  ScheduleFile repaired{.name = file.name, .rows = {}, .has_communication = true};
  for (std::size_t rank = 0; rank < file.rows.size(); ++rank) {
    repaired.rows.push_back(with_stage_actions(problem, program.ranks[rank], file.rows[rank]));
  }
  return repaired;
}

}  // namespace counterflow
