#include <fmt/format.h>

#include <optional>

#include "scheduler/verify/rules.h"

namespace counterflow::rules {
namespace {

struct Fault {
  const char* rule;
  std::string message;
};

// What is wrong with one op on this rank, if anything.
std::optional<Fault> fault(const Problem& problem, Rank rank, const Op& op) {
  if (op.stage >= problem.stages()) {
    return Fault{"range", fmt::format("there is no stage {}; the problem has stages 0..{}",
                                      op.stage, problem.stages() - 1)};
  }
  if (op.replica >= problem.placement.replicas()) {
    if (op.replica == 1) {
      return Fault{"range", "there is no second replica; only the bidirectional placement has one"};
    }
    return Fault{"range", fmt::format("there is no replica {}; the problem has replicas 0..{}",
                                      op.replica, problem.placement.replicas() - 1)};
  }
  if (has_microbatch(op.kind) && (op.microbatch < 0 || op.microbatch >= problem.microbatches)) {
    return Fault{"range", fmt::format("there is no microbatch {}; the problem has 0..{}",
                                      op.microbatch, problem.microbatches - 1)};
  }
  if (has_microbatch(op.kind) && op.replica != problem.replica_of(op.microbatch)) {
    return Fault{"range",
                 fmt::format("microbatch {} flows through replica {}, not {}", op.microbatch,
                             problem.replica_of(op.microbatch), op.replica)};
  }
  const Rank home = problem.placement.rank_of(op.stage, op.replica);
  if (home != rank) {
    return Fault{"rank",
                 fmt::format("stage {} expected on rank {}, given rank {}", op.stage, home, rank)};
  }
  return std::nullopt;
}

void check(const Problem& problem, std::size_t rank, std::size_t index, const Op& op,
           Diagnostics& out) {
  if (op.kind == OpKind::none) return;
  auto found = fault(problem, static_cast<Rank>(rank), op);
  if (!found) return;
  out.push_back({.rule = found->rule,
                 .rank = static_cast<Rank>(rank),
                 .index = static_cast<std::int64_t>(index),
                 .op = op,
                 .message = std::move(found->message)});
}

// The stages that a file names at the other end of its transfers: 0SEND_F3>2.
void other_ends(const Problem& problem, std::size_t rank, std::size_t index, const Action& action,
                Diagnostics& out) {
  for (std::size_t k = 0; k < action.others.size(); ++k) {
    if (action.others[k] < problem.stages()) continue;
    out.push_back({.rule = "range",
                   .rank = static_cast<Rank>(rank),
                   .index = static_cast<std::int64_t>(index),
                   .op = action.form == Action::Form::group ? action.group[k] : action.op,
                   .message = fmt::format("names stage {} at its other end; the problem has stages "
                                          "0..{}",
                                          action.others[k], problem.stages() - 1)});
  }
}

bool row_count(const Problem& problem, std::size_t rows, Diagnostics& out) {
  if (rows == static_cast<std::size_t>(problem.ranks())) return true;
  out.push_back({.rule = "range",
                 .rank = std::nullopt,
                 .index = std::nullopt,
                 .op = {},
                 .message = fmt::format("the schedule has {} rows, one a rank; the problem has {} "
                                        "ranks",
                                        rows, problem.ranks())});
  return false;
}

}  // namespace

void range(const Problem& problem, const Schedule& schedule, Diagnostics& out) {
  if (!row_count(problem, schedule.ranks.size(), out)) return;
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    for (std::size_t index = 0; index < schedule.ranks[rank].size(); ++index) {
      const Slot& slot = schedule.ranks[rank][index];
      check(problem, rank, index, slot.first, out);
      check(problem, rank, index, slot.second, out);
    }
  }
}

void range(const Problem& problem, const ScheduleFile& file, Diagnostics& out) {
  if (!row_count(problem, file.rows.size(), out)) return;
  for (std::size_t rank = 0; rank < file.rows.size(); ++rank) {
    for (std::size_t index = 0; index < file.rows[rank].size(); ++index) {
      const Action& action = file.rows[rank][index];
      check(problem, rank, index, action.op, out);
      check(problem, rank, index, action.paired, out);
      for (const Op& op : action.group) check(problem, rank, index, op, out);
      other_ends(problem, rank, index, action, out);
    }
  }
}

}  // namespace counterflow::rules
